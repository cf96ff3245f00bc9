"""Who is waited for while a job runs, by what its ranks did at the same ticks. In constant memory."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ..model.alignment import Alignment
from ..model.facts import RankView, Snapshot, Verdict
from ..model.pace import Ranks
from ..model.slow import Alike, Share, Slow
from .activity import Activity
from .windows import LEAST, Windows

MOST_RANKS = 256
"""Ranks of a job up to which it is told who is waited for."""

ALIKE = 0.5
"""Share of the time that all ranks spend at a line of which that is worth a word."""

SOON = 64
"""Ticks before which nothing is said of all ranks."""


class Accounting:
    """Takes in the samples of a run, tick by tick."""

    def __init__(self) -> None:
        self._alignment = Alignment()
        self._activities: dict[int, Activity] = {}
        self._windows = Windows()
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
        for tick in self._alignment.due(self._now):
            self._count(tick)

    def _take_in(self, rank: int, view: RankView) -> None:
        assert view.process is not None, "the ranks are complete"
        activity = self._activities.setdefault(rank, Activity())
        for sample in self._alignment.take(rank, view.process.samples):
            activity.take(sample)
        if view.process.state == "stopped":
            activity.stops.append(self._now)

    def _count(self, tick: int) -> None:
        """Take in one tick; nothing where nothing tells what one of the ranks did."""
        done = self._alignment.at(tick)
        if done is None:
            return
        acting = frozenset(rank for rank, what in done.items() if what != "waits")
        alone = acting if 0 < len(acting) < len(done) and self._is_behind(tick, acting) else Ranks()
        ran = {rank: ran for rank, ran in self._alignment.ran(tick).items() if rank not in alone}
        at = self._alignment.time_of(tick, self._now)
        self._windows.note(alone, at, same_wait=ran == self._ran)
        self._ran = ran
        for rank, activity in self._activities.items():
            activity.count(tick, done[rank], waited_for=rank in alone)
            if alone and rank not in alone:
                activity.wait(tick)

    def _is_behind(self, tick: int, acting: Ranks) -> bool:
        """False where those who act have come wherever the others are: these only wake up late."""
        issued = self._alignment.issued(tick)
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
        outstanding = self._windows.outstanding(len(self._activities))
        if outstanding is None or self._begun is None:
            return None
        ranks, _ = outstanding
        first = self._share(ranks)
        shares = [self._share(Ranks([rank])) for rank in sorted(self._activities.keys() - ranks)]
        return Slow(
            ranks=first.ranks,
            share=first.waited_for,
            kind=first.kind,
            seconds=first.waited_for * (self._now - self._begun),
            where=first.where,
            asleep=first.asleep,
            shares=(first, *sorted(shares, key=lambda share: -share.waited_for)),
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
        rest = [activity for rank, activity in self._activities.items() if rank not in ranks]
        where, asleep = longest.place()
        return replace(share, where=where, kind=longest.kind(rest), asleep=asleep)

    def alike(self) -> Alike | None:
        """The line at which all ranks spend much of their time; None where there is none."""
        if self._windows.ticks < SOON or not self._activities:
            return None
        activities = [*self._activities.values()]
        shares = {
            line: min(activity.share(line) for activity in activities)
            for line in activities[0].lines(ALIKE)
        }
        line = max(shares, key=lambda line: shares[line], default=None)
        if line is None or shares[line] < ALIKE:
            return None
        where, kind, asleep = line
        return Alike(where, shares[line], kind, asleep)


def _is_complete(views: Mapping[int, RankView], snapshot: Snapshot) -> bool:
    """True while all ranks are there and have been sampled, which a beacon does once it has joined."""
    number = snapshot.job.world_size
    if number is None or not 2 <= number <= MOST_RANKS or len(views) != number:
        return False
    processes = [view.process for view in views.values()]
    joined = any(view.joined for view in views.values())
    return joined and all(p is not None and p.alive and p.samples for p in processes)
