"""What each tab below the picture shows: processes, memory, a stack. Others are in `ranks`, `ports`."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from markupsafe import Markup

from ...model.facts import ProcessView, Snapshot
from ...model.wording import activities, megabytes, stack_of
from ...report.source_lines import Sources
from .family import family
from .templates import html

MOST = 200
"""Processes shown in the tree, and bars; the rest is counted."""


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
    return tree + _more(len(members) - len(shown))


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


def memory_bars(snapshots: Sequence[Snapshot]) -> str:
    """One bar a process, all on one scale; a line across it marks the most it has had.

    Of too many, those that have had most are shown.

    Args:
        snapshots: of the run so far, in the order of time; at least one.
    """
    most: dict[int, int] = {}
    for snapshot in snapshots:
        for _, process in family(snapshot):
            most[process.pid] = max(most.get(process.pid, 0), process.memory)
    bars = [
        (name, process.memory if process.alive else 0, most[process.pid])
        for name, process in family(snapshots[-1])
        if most[process.pid]
    ]
    if not bars:
        return "<p>No process has been seen yet.</p>"
    together = megabytes(sum(now for _, now, _ in bars)) or "nothing"
    caption = f"Memory: {together} in {len(bars)} processes"
    least = heapq.nlargest(MOST, (peak for *_, peak in bars))[-1]
    shown = [bar for bar in bars if bar[2] >= least][:MOST]
    return html("memory", caption, shown, max(peak for *_, peak in bars)) + _more(len(bars) - len(shown))


def _more(number: int) -> Markup:
    return Markup("<p>and {:,} more</p>").format(number) if number else Markup("")


def stack(name: str, process: ProcessView, sources: Sources) -> str:
    """Where a process is; where it failed, when an error has ended it.

    Args:
        name: what the panel calls it.
        sources: gives the text of the user's lines.
    """
    frames = stack_of(process)
    own = [(frame, sources.line(frame)) for frame in frames if frame.user]
    whole = [(frame, "") for frame in frames]
    return html("stack", name, process, "; ".join(activities(process)), own, whole)


def own_stack(name: str, process: ProcessView, sources: Sources) -> str:
    """Where a process is in the user's code; arguments as for `stack`."""
    own = [(frame, sources.line(frame)) for frame in stack_of(process) if frame.user]
    return html("stack", name, process, "; ".join(activities(process)), own, own)
