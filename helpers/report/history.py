"""The snapshots of a run in memory, thinned out the longer it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from ..model.facts import ErrorView, ProcessView, Snapshot
from ..model.frames import Frame
from ..model.issued import Issued

MOST = 1000
"""Snapshots kept at most. Drawing 1000 of two ranks takes 30 ms."""

MOST_PROCESSES = 16_000
"""Processes in all snapshots together: 250 snapshots of 64 ranks. Drawing them takes 0.03 s."""


_LARGE = ("command", "stack", "waits", "collectives", "issued", "ports", "error")
"""The large fields of a process, which rarely change from one look to the next."""


class History:
    """Snapshots in the order of time; the longer the run and the more ranks, the further apart.

    Attributes:
        snapshots: those kept; the newest is always among them.
    """

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self._spacing = 0.0
        self._newest: dict[int, ProcessView] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Keep one more. It replaces the last one when that lies too close before it."""
        snapshots = self.snapshots
        if len(snapshots) > 1 and snapshots[-1].time - snapshots[-2].time < self._spacing:
            snapshots.pop()
        snapshots.append(self._lean(snapshot))
        processes = 1 + sum(1 + len(view.children) for view in snapshot.ranks)
        if len(snapshots) > max(16, min(MOST, MOST_PROCESSES // processes)):
            self._spacing = (snapshots[-1].time - snapshots[0].time) / len(snapshots) * 2
            del snapshots[1:-1:2]

    def _lean(self, snapshot: Snapshot) -> Snapshot:
        """The same snapshot; what is large and as it was at the last look is held once.

        Of 64 ranks that do not move, 60 snapshots take 15 MB instead of 40.
        """
        before, self._newest = self._newest, {}

        def lean(process: ProcessView) -> ProcessView:
            old = before.get(process.pid, process)
            same = (name for name in _LARGE if _same(getattr(old, name), getattr(process, name)))
            compact = replace(process, **{name: getattr(old, name) for name in same})
            self._newest[process.pid] = compact
            return compact

        return replace(
            snapshot,
            ranks=tuple(
                replace(
                    view,
                    process=view.process and lean(view.process),
                    children=tuple(
                        replace(child, process=lean(child.process)) for child in view.children
                    ),
                )
                for view in snapshot.ranks
            ),
            launchers=tuple(map(lean, snapshot.launchers)),
        )


def _same(old: Any, new: Any) -> bool:
    """True for parts of a process that are equal, also in the values of frames and of calls.

    Equality leaves those out: it asks for the place alone.
    """
    return old is new or (old == new and [*_values(old)] == [*_values(new)])


def _values(part: Any) -> Iterator[object]:
    for item in part if isinstance(part, tuple) else (part,):
        if isinstance(item, ErrorView):
            yield from _values(item.stack)
        elif isinstance(item, Frame | Issued):
            yield item.values
        elif (where := getattr(item, "where", None)) is not None:
            yield where.values
