"""The snapshots of one run that are kept for its picture and its recording: bounded, however long."""

from __future__ import annotations

from dataclasses import replace

from ..model.facts import ChildView, ProcessView, RankView, Snapshot

MOST = 1000
"""Snapshots kept at most. Drawing 1000 of two ranks takes 30 ms."""

MOST_PROCESSES = 16_000
"""Processes in all snapshots together: 250 snapshots of 64 ranks. Drawing them takes 0.2 s."""


class History:
    """Snapshots in the order of time; the longer the run and the more ranks, the further apart.

    Attributes:
        snapshots: those kept; the newest is always among them.
    """

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self._apart = 0.0
        self._before: dict[int, ProcessView] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Keep one more. It takes the place of the last one when that lies too close before it."""
        kept = self.snapshots
        if len(kept) > 1 and kept[-1].time - kept[-2].time < self._apart:
            kept.pop()
        kept.append(self._lean(snapshot))
        processes = 1 + sum(1 + len(view.children) for view in snapshot.ranks)
        if len(kept) > max(16, min(MOST, MOST_PROCESSES // processes)):
            self._apart = (kept[-1].time - kept[0].time) / len(kept) * 2
            del kept[1:-1:2]

    def _lean(self, snapshot: Snapshot) -> Snapshot:
        """The same snapshot; what has not changed of a process is held once, not in each snapshot."""
        before, self._before = self._before, {}
        return replace(
            snapshot,
            ranks=tuple(self._lean_rank(view, before) for view in snapshot.ranks),
            launchers=tuple(self._share(process, before) for process in snapshot.launchers),
        )

    def _lean_rank(self, view: RankView, before: dict[int, ProcessView]) -> RankView:
        children: tuple[ChildView, ...] = tuple(
            replace(child, process=self._share(child.process, before)) for child in view.children
        )
        process = None if view.process is None else self._share(view.process, before)
        return replace(view, process=process, children=children)

    def _share(self, new: ProcessView, before: dict[int, ProcessView]) -> ProcessView:
        old = before.get(new.pid)
        if old is not None:
            new = replace(
                new,
                command=old.command if old.command == new.command else new.command,
                stack=old.stack if old.stack == new.stack else new.stack,
                waits=old.waits if old.waits == new.waits else new.waits,
                collectives=old.collectives if old.collectives == new.collectives else new.collectives,
                ports=old.ports if old.ports == new.ports else new.ports,
                error=old.error if old.error == new.error else new.error,
            )
        self._before[new.pid] = new
        return new
