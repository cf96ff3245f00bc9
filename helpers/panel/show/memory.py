"""Memory of each process, now and at most, as bars. Pure; every outside text is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.facts import Snapshot
from ...model.wording import megabytes
from ...report.markup import row, table, text
from .family import family

_HEADS = ("Process", "Resident now", "Now", "At most")


def memory_bars(snapshots: Sequence[Snapshot]) -> str:
    """One bar a process, all on one scale; a line across it marks the most it has had.

    Args:
        snapshots: of the run so far, in the order of time.
    """
    most: dict[int, int] = {}
    for snapshot in snapshots:
        for member in family(snapshot):
            pid = member.process.pid
            most[pid] = max(most.get(pid, 0), member.process.memory)
    members = [m for m in family(snapshots[-1]) if most[m.process.pid]] if snapshots else []
    if not members:
        return "<p>No process has been seen yet.</p>"
    scale = max(most[member.process.pid] for member in members)
    rows = []
    together = 0
    for member in members:
        now = member.process.memory if member.process.alive else 0
        peak = most[member.process.pid]
        together += now
        bar = (
            f'<div class="sr-bar" aria-hidden="true"><div style="width:{100 * now / scale:.0f}%"></div>'
            f'<i style="left:{100 * peak / scale:.0f}%"></i></div>'
        )
        rows.append(row(text(member.name), (bar, megabytes(now) or "ended", megabytes(peak))))
    caption = f"Memory: {megabytes(together) or 'nothing'} in {len(members)} processes"
    return table(caption, _HEADS, rows)
