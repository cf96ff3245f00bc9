"""The samples of a machine's ranks -> their pace, which can be compared with that on other machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ..model.alignment import Alignment
from ..model.facts import RankView, Snapshot
from ..model.pace import Numbered, Pace, Ranks
from ..model.samples import Line, Sample
from .observer import Observer
from .sampled import of_beacon

MOST_BLOCKS = 128
"""Blocks of a group; where there are more, each two become one: a job of weeks takes no more room."""

MOST_SETS, MOST_LINES, MOST_GROUPS = 16, 64, 16
"""Sets of ranks that are counted in a block, lines of a rank, and groups; the rarest are forgotten."""

AGAIN = 0.02
"""Part of the time so far after which it is looked up again which process is which rank."""


class RankSamples:
    """The samples of all ranks of a machine, as an observer has seen them.

    Args:
        observer: has taken in the newest look each time.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._ranks: dict[int, RankView] = {}  # by pid
        self._newest_ticks: dict[int, int] = {}
        self._due = 0.0

    def new(self) -> dict[int, tuple[Sample, ...]]:
        """Those that the newest look has brought, by rank; empty where it has brought none."""
        newest, watched = self._observer.newest, self._observer.watched
        if newest is None or all(report.samples is None for report in newest.told):
            return {}
        now = newest.time - watched.start
        if now >= self._due:
            self._ranks = _sampled(self._observer.snapshot())
            self._due = now * (1.0 + AGAIN) + 1.0
        by_rank: dict[int, tuple[Sample, ...]] = {}
        for pid, view in self._ranks.items():
            after = self._newest_ticks.get(pid, -1)
            samples = self._observer.inbox.samples.get(pid, ())
            newer = [(sample, place) for sample, place in samples if sample["tick"] > after]
            if newer and view.rank is not None:
                self._newest_ticks[pid] = newer[-1][0]["tick"]
                by_rank[view.rank] = of_beacon(newer, view.children, watched.cwd, watched.start)
        return by_rank


class Pacing:
    """Takes in the samples of all ranks of a machine."""

    def __init__(self) -> None:
        self._alignment = Alignment()
        self._times: list[float] = []
        self._ticks = 0
        self._groups: dict[str, _Blocks] = {}
        self._lines: dict[int, Counter[Line]] = {}

    def take(self, samples: Mapping[int, Sequence[Sample]], now: float) -> None:
        """Take in samples that are new.

        Args:
            samples: by rank; now: seconds since the command was started.
        """
        for rank, newest in samples.items():
            lines = self._lines.setdefault(rank, Counter())
            for sample in self._alignment.take(rank, newest):
                if sample.line is not None and sample.doing != "waits":
                    lines[sample.line] += 1
            _trim(lines, MOST_LINES)
        for tick in self._alignment.due(now):
            self._count(tick, now)

    def _count(self, tick: int, now: float) -> None:
        activities = self._alignment.at(tick)
        if activities is None:
            return
        at = self._alignment.time_of(tick, now)
        self._times = [*self._times[:1], at]
        self._ticks += 1
        issued = self._alignment.issued(tick)
        acting = {rank for rank, activity in activities.items() if activity != "waits"}
        for group in sorted({group for numbers in issued.values() for group in numbers}):
            if group in self._groups or len(self._groups) < MOST_GROUPS:
                blocks = self._groups.setdefault(group, _Blocks())
                blocks.add(*_next_of(group, issued, acting))

    def pace(self) -> Pace | None:
        """What they did; None where nothing tells it."""
        if not self._ticks:
            return None
        groups = {name: blocks.numbered() for name, blocks in self._groups.items()}
        lines = {rank: dict(lines) for rank, lines in self._lines.items()}
        return Pace(self._ticks, self._times[-1] - self._times[0], groups, lines)


class _Blocks:
    """The ticks of one group by the numbers of its collectives."""

    def __init__(self) -> None:
        self._width = 1
        self._counts: dict[int, Counter[Ranks]] = {}

    def add(self, number: int, ranks: Ranks) -> None:
        """Count a tick on the way to a collective."""
        self._count(number // self._width, Counter([ranks]))
        while len(self._counts) > MOST_BLOCKS:
            earlier, self._counts = self._counts, {}
            self._width *= 2
            for block, counter in earlier.items():
                self._count(block // 2, counter)

    def _count(self, block: int, counted: Counter[Ranks]) -> None:
        counts = self._counts.setdefault(block, Counter())
        counts.update(counted)
        _trim(counts, MOST_SETS)

    def numbered(self) -> Numbered:
        """All that was counted."""
        return Numbered(self._width, {block: dict(counter) for block, counter in self._counts.items()})


def _next_of(group: str, issued: Mapping[int, Mapping[str, int]], acting: set[int]) -> tuple[int, Ranks]:
    """The number of the oldest collective of a group that is not complete here, and who has still to
    come to it."""
    next_of = {
        rank: numbers[group] + (rank in acting) for rank, numbers in issued.items() if group in numbers
    }
    number = min(next_of.values())
    return number, frozenset(rank for rank in acting if next_of.get(rank) == number)


def _sampled(snapshot: Snapshot) -> dict[int, RankView]:
    """The ranks by pid; empty unless all that are seen here take samples."""
    views = [view for view in snapshot.ranks if view.rank is not None and view.process is not None]
    by_pid = {view.process.pid: view for view in views if view.process and view.process.samples}
    alive = all(view.process is not None and view.process.alive for view in views)
    return by_pid if alive and len(by_pid) == len(views) else {}


def _trim(counter: Counter[Ranks] | Counter[Line], most: int) -> None:
    if len(counter) > 2 * most:
        for key, _ in counter.most_common()[most:]:
            del counter[key]
