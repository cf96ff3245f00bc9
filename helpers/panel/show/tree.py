"""Who has started whom, with the command lines. Pure; every outside text is escaped."""

from __future__ import annotations

from ...model.facts import Snapshot
from ...report.markup import code, text
from .family import Member, family
from .ranks import state_mark

MOST = 200
"""Processes shown; the rest is counted."""


def process_tree(snapshot: Snapshot) -> str:
    """Every process of the job below the one that has started it."""
    members = list(family(snapshot))
    if not members:
        return "<p>No process has been seen yet.</p>"
    shown = {member.process.pid: member for member in members[:MOST]}
    below: dict[int | None, list[int]] = {}
    for pid, member in shown.items():
        parent = member.process.parent
        below.setdefault(parent if parent in shown and parent != pid else None, []).append(pid)
    left = set(shown)
    tree = _list(None, below, shown, left)
    more = len(members) - len(shown)
    return tree + (f"<p>and {more} more</p>" if more else "")


def _list(
    parent: int | None, below: dict[int | None, list[int]], shown: dict[int, Member], left: set[int]
) -> str:
    """The processes below `parent`; a pid that has been used twice closes no circle."""
    parts = []
    for pid in below.get(parent, ()):
        if pid in left:
            left.discard(pid)
            member = shown[pid]
            said = f"<strong>{text(member.name)}</strong>, pid {pid}"
            state = state_mark(member.process.state, member.process)
            command = code(" ".join(member.process.command)) or "command not known"
            parts.append(f"<li>{said} {state}<br>{command}{_list(pid, below, shown, left)}</li>")
    look = ' class="sr-tree"' if parent is None else ""
    return f"<ul{look}>{''.join(parts)}</ul>" if parts else ""
