"""Made-up jobs that go on step by step, and what the samples of their ranks show at each tick."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from helpers.beacon.ticks import first_after, moment
from helpers.model.facts import Job, ProcessView, RankView, Snapshot
from helpers.model.frames import Frame
from helpers.model.samples import Sample

EVERY = 6
"""Ticks between two looks."""

Work = Callable[[int, int], Sequence[tuple[int, float, str]]]
"""Step and rank -> what it does before all meet: line, seconds, system call (none: it computes)."""

Clock = Callable[[float], float]


@dataclass
class Steps:
    """A job whose ranks meet at the end of each step, `meets` seconds long.

    Attributes:
        ranks: their number; work: of each; seconds: for which the job runs.
        unable: seconds in which a rank can take no sample, by rank.
    """

    ranks: int
    work: Work
    seconds: float = 20.0
    meets: float = 0.02
    unable: Callable[[int, float], bool] = lambda rank, time: False
    begins: float = 1000.0

    def __post_init__(self) -> None:
        self._starts: list[list[float]] = [[] for _ in range(self.ranks)]
        self._does: list[list[tuple[int, str, float, int]]] = [[] for _ in range(self.ranks)]
        self._ran = [0.0] * self.ranks
        self.alone = [0.0] * self.ranks
        now, step = self.begins, 0
        while now < self.begins + self.seconds:
            ends = [self._one(rank, now, step) for rank in range(self.ranks)]
            *_, second, last = sorted([0.0, *ends])
            self.alone[ends.index(last)] += last - second
            now, step = last + self.meets, step + 1
        self.ends = now
        self.shares = [alone / (now - self.begins) for alone in self.alone]

    def _one(self, rank: int, now: float, step: int) -> float:
        for line, seconds, call in self.work(step, rank):
            self._starts[rank].append(now)
            self._does[rank].append((line, call, self._ran[rank], step))
            now += seconds
            self._ran[rank] += 0.001 if call else seconds
        self._starts[rank].append(now)
        self._does[rank].append((0, "futex", self._ran[rank], step + 1))
        return now

    def sample(self, rank: int, tick: int, due: int, clock: Clock = lambda time: time) -> Sample:
        """What a rank does at a tick.

        Args:
            clock: time of its machine -> time of the job.
        """
        at = clock(moment(tick))
        index = bisect_right(self._starts[rank], at) - 1
        line, call, ran, issued = self._does[rank][index]
        return Sample(
            tick=tick,
            due=due,
            at=at - self.begins,
            doing="works" if line else "waits",
            where=Frame("train.py", line or 99, "train"),
            call=call,
            issued={"0": issued},
            ran=ran + (at - self._starts[rank][index] if line and not call else 0.0),
        )

    def snapshots(self) -> Iterator[Snapshot]:
        """The looks at the job."""
        taken: list[list[Sample]] = [[] for _ in range(self.ranks)]
        due = [first_after(self.begins)] * self.ranks
        for tick in range(first_after(self.begins), first_after(self.ends)):
            for rank in range(self.ranks):
                if not self.unable(rank, moment(tick) - self.begins):
                    taken[rank].append(self.sample(rank, tick, due[rank]))
                    due[rank] = tick + 1
            if tick % EVERY == 0:
                yield self._snapshot(moment(tick) - self.begins, taken)

    def _snapshot(self, time: float, taken: Sequence[Sequence[Sample]]) -> Snapshot:
        views = tuple(
            RankView(
                rank,
                state="running",
                joined=True,
                process=ProcessView(100 + rank, "rank", samples=tuple(taken[rank][-32:])),
            )
            for rank in range(self.ranks)
        )
        return Snapshot(time, Job(("train",), world_size=self.ranks), views)
