"""Memory of each process, now and at most, as bars."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.facts import Snapshot
from ...model.wording import megabytes
from .family import family
from .templates import html


def memory_bars(snapshots: Sequence[Snapshot]) -> str:
    """One bar a process, all on one scale; a line across it marks the most it has had.

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
    return html("memory", caption, bars, max(peak for *_, peak in bars))
