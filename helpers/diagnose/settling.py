"""When the verdict on a run stands, and when the run is over: told snapshot by snapshot. No clock."""

from __future__ import annotations

import math
from collections import deque

import msgspec
from msgspec.structs import replace

from ..model.facts import STILL, ProcessView, Snapshot, Verdict
from ..model.waits import ForRanks
from .accounting import Accounting
from .diagnose import diagnose, running_summary
from .graph import Graph, ends_soon

HISTORY = 16
"""Snapshots that `diagnose` is given: about three seconds."""

ARRIVES = 1.2
"""Seconds that a proved hang waits at most for the ranks that still move, so that its report can say
where they block, too. A verdict comes within three seconds of its stall, and a proof takes one."""

STATUS_COMES = 1.0
"""Seconds within which the exit status of a process that has ended is known, if ever."""

SETTLE = 10.0
"""Seconds that an error verdict waits at most for the rest of the job to end or to block."""

SETTLE_QUIET = 30.0
"""The same for a job in which nothing has failed although a rank exists twice: how it ends is part of
the finding, since it may well end with exit code 0."""

WATCHED_LEAST = 3.0
"""Seconds that a job is watched in any case which was running before anybody looked."""

MOST_PATIENCES = 3.0
"""Times its patience that a job is watched at most while one of its ranks comes near to it: where looks
are late, what a rank does between them is not known, and does not count."""

ENDED = "The job ended while it was watched; how it ended can only be seen by who has started it."


class Ruling(msgspec.Struct, frozen=True):
    """What a snapshot means for the run.

    Attributes:
        settled: True when the verdict will not change any more, or no more time is given.
        over: True when there is nothing more to see.
    """

    verdict: Verdict
    settled: bool
    over: bool


class Settling:
    """Judges a run as it goes on.

    Args:
        patience: seconds after which a rank that uses no CPU and does not move is a suspicion.
        max_seconds: how long the job may run; None for as long as it takes.
        stop_on_suspicion: whether a suspicion settles the verdict.
    """

    def __init__(
        self,
        *,
        patience: float = 30.0,
        max_seconds: float | None = None,
        stop_on_suspicion: bool = False,
    ) -> None:
        self.patience = patience
        self.max_seconds = max_seconds
        self.stop_on_suspicion = stop_on_suspicion
        self._history: deque[Snapshot] = deque(maxlen=HISTORY)
        self._accounting = Accounting()
        self._failed_at: float | None = None
        self._proved_at: float | None = None

    def take(self, snapshot: Snapshot) -> Ruling:
        """Take in the newest snapshot."""
        self._history.append(snapshot)
        self._accounting.take(snapshot)
        out_of_time = self._is_out_of_time(snapshot)
        verdict = self._diagnose(final=False)
        over, settled = is_over(snapshot), self._settled(verdict, snapshot)
        if out_of_time or self.stop_on_suspicion:
            last = self._diagnose(final=True)
            if out_of_time or _is_suspected(last):
                verdict = last
        settled = settled or out_of_time or over or _is_suspected(verdict)
        return Ruling(self._accounting.added(verdict), settled, over or out_of_time)

    def _is_out_of_time(self, snapshot: Snapshot) -> bool:
        return self.max_seconds is not None and snapshot.time >= self.max_seconds

    def _diagnose(self, *, final: bool) -> Verdict:
        return diagnose(tuple(self._history), patience=self.patience, final=final)

    def _settled(self, verdict: Verdict, snapshot: Snapshot) -> bool:
        """True when a verdict will not change any more.

        A proved hang is final, once the other ranks have come to rest, too, or have had the time for it:
        `SETTLE` seconds where one is still starting, else `ARRIVES`. An error waits until every other
        process has ended or is blocked unchanged, so that it is the same each time, and until a launcher
        that restarts failed ranks has done so as often as it may.
        """
        if verdict.outcome == "running":
            self._failed_at = self._proved_at = None
            return False
        if verdict.outcome == "ok":
            return is_over(snapshot)
        if verdict.outcome == "hang" and not _anything_failed(snapshot):
            if self._proved_at is None:
                self._proved_at = snapshot.time
            waited = snapshot.time - self._proved_at
            return verdict.proved and waited >= _time_to_arrive(snapshot)
        if snapshot.job.restarts and snapshot.job.ended is None:
            return False
        if self._failed_at is None:
            self._failed_at = snapshot.time
        settle = SETTLE_QUIET if verdict.cause == "duplicate-rank" else SETTLE
        if is_over(snapshot) or snapshot.time - self._failed_at >= settle:
            return True
        return snapshot.time - self._failed_at >= STILL and _all_rest(snapshot)


class SettlingOfAttached(Settling):
    """The same for a job that was running before anybody looked, and goes on.

    Its time is counted from the first look that shows a stack: on a busy machine it takes a while to
    read one.

    Args:
        since: seconds after its start at which it was first looked at.
        least: seconds that a job is watched in any case which nothing shows to hang.
    """

    def __init__(self, *, patience: float, since: float, least: float = WATCHED_LEAST) -> None:
        super().__init__(patience=patience)
        self._has_stacks = False
        self._least = max(least, WATCHED_LEAST)
        self._count_from(since)

    def take(self, snapshot: Snapshot) -> Ruling:
        """Take in the newest snapshot; where all ranks wait for each other, a proof may yet come."""
        if not self._has_stacks and any(view.process and view.process.stack for view in snapshot.ranks):
            self._has_stacks = True
            self._count_from(snapshot.time)
        watched = snapshot.time - self._since >= WATCHED_LEAST and not snapshot.asked
        if watched and _wait_for_each_other(snapshot):
            self.patience = patience_at_end(snapshot, self.patience, attached=True)
            self.max_seconds = min(self.max_seconds or math.inf, snapshot.time + ARRIVES)
        ruling = super().take(snapshot)
        verdict, ended = ruling.verdict, snapshot.job.ended is not None
        if verdict.outcome == "running" and (ended or (ruling.settled and verdict.cause == "none")):
            summary = ENDED if ended else running_summary(snapshot)
            return replace(ruling, verdict=replace(verdict, summary=summary))
        return ruling

    def _count_from(self, time: float) -> None:
        self._since = time
        self._last_moment = time + MOST_PATIENCES * max(self.patience, 1.0)
        self.max_seconds = time + max(self.patience + 1.0, self._least)

    def _is_out_of_time(self, snapshot: Snapshot) -> bool:
        """True once patience is over, unless a rank has rested for half of it, and may do so for all."""
        over = super()._is_out_of_time(snapshot)
        views = (view.process for view in snapshot.ranks if view.process and view.process.alive)
        near = any(
            self.patience / 2 <= min(process.unmoved, process.idle) < self.patience
            and not ends_soon(process, snapshot.time)
            for process in views
        )
        return over and (not near or snapshot.time >= self._last_moment)

    def _settled(self, verdict: Verdict, snapshot: Snapshot) -> bool:
        if snapshot.job.ended is not None:
            return True
        if verdict.outcome == "running":
            return snapshot.time - self._since >= self._least and not _anybody_rests(snapshot)
        return verdict.proved and not snapshot.asked


def patience_at_end(snapshot: Snapshot, patience: float, *, attached: bool) -> float:
    """Seconds of patience with which the last snapshot of a job is judged.

    Where all ranks of a job that was running before anybody looked wait for each other, nothing else can
    move them, and no more is needed than such a job is watched in any case.
    """
    short = attached and _wait_for_each_other(snapshot)
    return min(patience, WATCHED_LEAST) if short else patience


def is_over(snapshot: Snapshot) -> bool:
    """True when the command and every rank have ended, and how is known or will not be known."""
    processes = [view.process for view in snapshot.ranks if view.process is not None]
    return snapshot.job.ended is not None and all(
        process.ended is not None
        and (
            process.exit_code is not None
            or process.signal is not None
            or snapshot.time - process.ended >= STATUS_COMES
        )
        for process in processes
    )


def _is_suspected(verdict: Verdict) -> bool:
    """True for an outcome that only patience supports."""
    return verdict.outcome == "hang" and not verdict.proved


def _anything_failed(snapshot: Snapshot) -> bool:
    """True when a rank has ended otherwise than with exit code 0."""
    return any(
        view.process is not None and not view.process.alive and view.process.exit_code != 0
        for view in snapshot.ranks
    )


def _time_to_arrive(snapshot: Snapshot) -> float:
    """Seconds that the ranks which still move may take to come to where they block."""
    alive = [view for view in snapshot.ranks if view.process is not None and view.process.alive]
    if any(view.state in ("starting", "importing") for view in alive):
        return SETTLE
    moving = any(view.process is not None and not _rests(view.process) for view in alive)
    return ARRIVES if moving else 0.0


def _all_rest(snapshot: Snapshot) -> bool:
    """True when nothing can wake the ranks that are left, and no launcher is about to end the job."""
    alive = {v.rank for v in snapshot.ranks if v.process is not None and v.process.alive}
    return (
        bool(alive)
        and alive <= Graph.of(snapshot).stuck
        and all(
            not launcher.alive or launcher.still >= STILL or bool(launcher.waits)
            for launcher in snapshot.launchers
        )
    )


def _anybody_rests(snapshot: Snapshot) -> bool:
    """True while a rank rests, or a launcher that waits for other nodes: watching on may tell more."""
    alive = [view.process for view in snapshot.ranks if view.process and view.process.alive]
    early = [launcher for launcher in snapshot.launchers if launcher.alive and launcher.awaits_nodes]
    return any(_rests(process) for process in alive or early)


def _wait_for_each_other(snapshot: Snapshot) -> bool:
    """True when every rank has waited for others, and for nothing else, while it was watched."""
    views = [view.process for view in snapshot.ranks]
    return bool(views) and all(
        process is not None
        and process.blocked
        and all(isinstance(wait, ForRanks) for wait in process.waits)
        and min(process.unmoved, process.idle) >= WATCHED_LEAST
        for process in views
    )


def _rests(process: ProcessView) -> bool:
    """True when a process neither moves nor uses CPU, or waits without moving."""
    return process.blocked or min(process.unmoved, process.idle) >= STILL
