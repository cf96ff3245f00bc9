"""What the causes look at: one snapshot, its wait-for graph and its events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..model.facts import ProcessView, RankView, Snapshot
from ..model.frames import Frame
from ..model.waits import Wait
from .events import Event, events
from .graph import Graph


@dataclass(frozen=True)
class Facts:
    """One moment of a job, prepared for the causes.

    Attributes:
        patience: seconds after which what has neither moved nor used CPU is assumed never to do so;
            infinite: nothing is assumed, and what is found is proved.
    """

    snapshot: Snapshot
    patience: float = math.inf

    @cached_property
    def graph(self) -> Graph:
        """The wait-for graph of the snapshot."""
        return Graph.of(self.snapshot, self.patience)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Failing ends, the most telling first."""
        return events(self.snapshot)

    @property
    def first(self) -> Event | None:
        """The event that the others follow from, if any has happened."""
        return self.events[0] if self.events else None

    @cached_property
    def stuck(self) -> frozenset[int]:
        """Ranks that nothing can wake any more."""
        return self.graph.stuck

    @property
    def alive(self) -> dict[int, RankView]:
        """Ranks whose process runs."""
        return {r: v for r, v in self.graph.ranks.items() if v.process and v.process.alive}

    @property
    def gone(self) -> dict[int, RankView]:
        """Ranks whose process has ended."""
        return {r: v for r, v in self.graph.ranks.items() if v.process and not v.process.alive}

    def processes(self, ranks: Sequence[int]) -> list[ProcessView]:
        """The processes of `ranks`, of those that have one."""
        views = [self.graph.ranks[rank] for rank in ranks]
        return [view.process for view in views if view.process is not None]

    def waits(self, rank: int) -> tuple[Wait, ...]:
        """What a rank is blocked in."""
        return self.graph.waits(rank)

    def where(self, ranks: Sequence[int]) -> Frame | None:
        """The line of the first of `ranks` that has one."""
        for rank in ranks:
            view = self.graph.ranks.get(rank)
            if view is not None and view.process is not None and view.process.where is not None:
                return view.process.where
        return None


def odd_ones(places: dict[int, object]) -> tuple[int, ...]:
    """The ranks outside the strict majority of `places`; all of them when there is none."""
    groups: dict[object, list[int]] = {}
    for rank, place in places.items():
        groups.setdefault(place, []).append(rank)
    largest = max(groups.values(), key=len, default=[])
    if len(groups) > 1 and 2 * len(largest) > len(places):
        return tuple(sorted(rank for rank in places if rank not in largest))
    return tuple(sorted(places))
