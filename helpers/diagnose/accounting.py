"""Who is waited for while a job runs, by what its ranks did at the same ticks. In constant memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..model.facts import RankView, Snapshot, Verdict
from ..model.samples import Sample
from ..model.slow import Alike, Share, Slow
from .activity import Activity
from .windows import LEAST, Ranks, Windows

KEPT = 64
"""Samples of a rank that are kept until those of the others are known."""

LATE = 3.0
"""Seconds after which a sample does not come any more."""

MOST_RANKS = 256
"""Ranks of a job up to which it is told who is waited for."""

ALIKE = 0.5
"""Share of the time that all ranks spend at a line of which that is worth a word."""

UNABLE = "unable"
"""What a rank did that could not run at a tick."""


class Accounting:
    """Takes in the samples of a run, tick by tick."""

    def __init__(self) -> None:
        self._known: dict[int, deque[Sample]] = {}
        self._activities: dict[int, Activity] = {}
        self._windows = Windows()
        self._newest = -1
        self._begun: float | None = None
        self._now = 0.0
        self._ran: dict[int, float] = {}

    def take(self, snapshot: Snapshot) -> None:
        """Take in what a snapshot has brought."""
        self._now = snapshot.time
        views = {view.rank: view for view in snapshot.ranks if view.rank is not None}
        if not _is_complete(views, snapshot):
            return
        if self._begun is None:
            self._begun = snapshot.time
        for rank, view in views.items():
            self._take_in(rank, view)
        while (tick := self._due()) is not None:
            self._count(tick)
            self._newest = tick

    def _take_in(self, rank: int, view: RankView) -> None:
        assert view.process is not None, "the ranks are complete"
        known = self._known.setdefault(rank, deque(maxlen=KEPT))
        activity = self._activities.setdefault(rank, Activity())
        newest = known[-1].tick if known else -1
        for sample in view.process.samples:
            if sample.tick > newest:
                known.append(sample)
                activity.take(sample)
        if view.process.state == "stopped":
            activity.stops.append(self._now)

    def _due(self) -> int | None:
        """The next tick of which everything is known that will be."""
        newer = [[s for s in samples if s.tick > self._newest] for samples in self._known.values()]
        first = min((samples[0] for samples in newer if samples), key=lambda one: one.tick, default=None)
        if first is None or (not all(newer) and self._now - first.at < LATE):
            return None
        return first.tick

    def _time_of(self, tick: int) -> float:
        """Seconds at which a tick was, by a sample that was taken at it."""
        times = (one.at for samples in self._known.values() for one in samples if one.tick >= tick)
        return min(times, default=self._now)

    def _count(self, tick: int) -> None:
        """Take in one tick; nothing where nothing tells what one of the ranks did."""
        done = {rank: _at(tick, samples) for rank, samples in self._known.items()}
        if any(what is None or what == "device" for what in done.values()):
            return
        acting = frozenset(rank for rank, what in done.items() if what != "waits")
        alone = acting if 0 < len(acting) < len(done) and self._is_behind(tick, acting) else Ranks()
        ran = {
            rank: _ran_until(tick, samples) for rank, samples in self._known.items() if rank not in alone
        }
        self._windows.note(alone, self._time_of(tick), same_wait=ran == self._ran)
        self._ran = ran
        for rank, activity in self._activities.items():
            activity.count(tick, done[rank] or "", waited_for=rank in alone)
            if alone and rank not in alone:
                activity.wait(tick)

    def _is_behind(self, tick: int, acting: Ranks) -> bool:
        """False where those who act have come wherever the others are: these only wake up late."""
        issued = {rank: _issued(tick, samples) for rank, samples in self._known.items()}
        waiting = [numbers for rank, numbers in issued.items() if rank not in acting]
        if not all(issued.values()):
            return True
        return any(
            numbers[group] > issued[rank][group]
            for rank in acting
            for numbers in waiting
            for group in numbers.keys() & issued[rank].keys()
        )

    def added(self, verdict: Verdict) -> Verdict:
        """A verdict with who was waited for; a hang has nobody."""
        if verdict.outcome == "hang":
            return verdict
        slow = self.slow()
        return replace(verdict, slow=slow, alike=None if slow is not None else self.alike())

    def slow(self) -> Slow | None:
        """Who was waited for; None where nobody stands out."""
        found = self._windows.outstanding(len(self._known))
        if found is None or self._begun is None:
            return None
        ranks, _ = found
        first = self._share(ranks)
        others = [self._share(Ranks([rank])) for rank in sorted(self._activities.keys() - ranks)]
        return Slow(
            ranks=first.ranks,
            share=first.waited_for,
            kind=first.kind,
            seconds=first.waited_for * (self._now - self._begun),
            where=first.where,
            asleep=first.asleep,
            shares=(first, *sorted(others, key=lambda share: -share.waited_for)),
        )

    def _share(self, ranks: Ranks) -> Share:
        """How their time went; why and where they were waited for only if that was for long enough."""
        activities = [self._activities[rank] for rank in sorted(ranks)]
        waits = max(activities, key=lambda activity: activity.waits)
        share = Share(
            ranks=tuple(sorted(ranks)),
            waited_for=self._windows.share(ranks),
            waits=waits.waits / max(1, waits.ticks),
            waits_at=waits.waits_at(),
        )
        if share.waited_for < LEAST:
            return share
        longest = max(activities, key=lambda activity: activity.waited_for)
        others = [one for rank, one in self._activities.items() if rank not in ranks]
        where, asleep = longest.place()
        return replace(share, where=where, kind=longest.kind(others), asleep=asleep)

    def alike(self) -> Alike | None:
        """The line at which all ranks spend much of their time; None where there is none."""
        if self._windows.ticks < KEPT or not self._activities:
            return None
        lines = [activity.lines() for activity in self._activities.values()]
        common = [line for line in lines[0] if all(line in one for one in lines)]
        line = max(common, key=lambda line: min(one[line] for one in lines), default=None)
        if line is None:
            return None
        where, kind, asleep = line
        share = min(one[line] for one in lines)
        return Alike(where, share, kind, asleep) if share >= ALIKE else None


def _is_complete(views: Mapping[int, RankView], snapshot: Snapshot) -> bool:
    """True while all ranks are there and have been sampled, which a beacon does once it has joined."""
    number = snapshot.job.world_size
    if number is None or not 2 <= number <= MOST_RANKS or len(views) != number:
        return False
    processes = [view.process for view in views.values()]
    joined = any(view.joined for view in views.values())
    return joined and all(one is not None and one.alive and one.samples for one in processes)


def _at(tick: int, samples: Sequence[Sample]) -> str | None:
    """What a rank did at a tick; `UNABLE` where it could not run, None where nothing tells."""
    after = next((sample for sample in samples if sample.tick >= tick), None)
    if after is None:
        return UNABLE if samples else None
    if after.tick == tick:
        return after.doing
    before = next((sample for sample in reversed(samples) if sample.tick < tick), None)
    if before is None or after.due > tick:
        return None  # it was not to be looked at then
    if before.doing == after.doing == "waits" and after.ran == before.ran:
        return "waits"
    return UNABLE


def _issued(tick: int, samples: Sequence[Sample]) -> Mapping[str, int]:
    """The newest collective of each group that a rank had issued by then; of one that could not run, as
    far as it had come before."""
    known = [sample for sample in samples if sample.tick <= tick]
    return known[-1].issued if known else {}


def _ran_until(tick: int, samples: Sequence[Sample]) -> float:
    """Seconds that the thread of a rank had had a processor: one that waits on has had no more."""
    return next((sample.ran for sample in samples if sample.tick >= tick), 0.0)
