"""Which process started which, with the command lines."""

from __future__ import annotations

from markupsafe import Markup

from ...model.facts import ProcessView, Snapshot
from .family import family
from .templates import html

MOST = 200
"""Processes shown; the rest is counted."""


def process_tree(snapshot: Snapshot) -> str:
    """Every process of the job below the one that started it."""
    members = list(family(snapshot))
    if not members:
        return "<p>No process has been seen yet.</p>"
    shown = {process.pid: (name, process) for name, process in members[:MOST]}
    below: dict[int | None, list[int]] = {}
    for pid, (_, process) in shown.items():
        parent = process.parent
        below.setdefault(parent if parent in shown and parent != pid else None, []).append(pid)
    tree = Markup('<ul class="sr-tree">{}</ul>').format(_list(None, below, shown, set(shown)))
    more = len(members) - len(shown)
    return tree + (Markup("<p>and {} more</p>").format(more) if more else "")


def _list(
    parent: int | None,
    below: dict[int | None, list[int]],
    shown: dict[int, tuple[str, ProcessView]],
    left: set[int],
) -> Markup:
    """The processes below `parent`. Each pid is listed once, so pids that were used twice end it."""
    parts = []
    for pid in below.get(parent, ()):
        if pid in left:
            left.discard(pid)
            children = _list(pid, below, shown, left)
            nested = Markup("<ul>{}</ul>").format(children) if children else ""
            parts.append(html("process", *shown[pid], nested))
    return Markup("").join(parts)
