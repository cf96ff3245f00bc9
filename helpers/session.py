"""One run, from command to Report: launch, observe, diagnose, report, on a supervisor thread."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from .diagnose.diagnose import diagnose
from .diagnose.graph import Graph
from .launch.attach import find_job
from .launch.launch import LaunchError, launch, reap_leftovers
from .launch.memory_limit import Enforcer, Limit, LimitError, enforcer
from .model.facts import STILL, Report, Snapshot, Verdict
from .observe import Observer, Running
from .observe.logs import Logs
from .report import report as reports
from .report.recording import Recorder

EVERY = 0.22
"""Seconds between two looks at the job."""

STATUS_COMES = 1.0
"""Seconds within which the exit status of a process that has ended is known, if ever."""

HISTORY = 16
"""Snapshots that `diagnose` is given: about three seconds."""

SETTLE = 10.0
"""Seconds that an error verdict waits at most for the rest of the job to end or to stand still."""

SETTLE_QUIET = 30.0
"""The same for a job in which nothing has failed although a rank exists twice: how it ends is part of
the finding, since it may well end with exit code 0."""

_log = logging.getLogger(__name__)


ATTACHED_PATIENCE = 10.0
"""Seconds that the job is watched, at most, before a rank that does not move is a suspicion."""

ATTACHED_LEAST = 3.0
"""Seconds that it is watched in any case."""

ENDED = "The job ended while it was watched; how it ended can only be seen by who has started it."


@dataclass(frozen=True)
class Sample:
    """A new look at the job, and what it means so far."""

    snapshot: Snapshot
    verdict: Verdict


@dataclass(frozen=True)
class Output:
    """A line that a process of the job has printed; `label` says which: `rank 0`, `job`, ..."""

    label: str
    line: str


@dataclass(frozen=True)
class Ended:
    """The run is over and nothing of it is left."""

    report: Report


@dataclass(frozen=True)
class Decided:
    """The verdict has been reached, while the job goes on (`keep_running`)."""

    report: Report


Event = Sample | Output | Ended | Decided


class Job(Running, Protocol):
    """A running job, as `helpers.launch.launch.Launch` is one."""

    run_id: str

    def stop(self) -> None:
        """End it, where ending it is ours."""

    def close(self) -> None:
        """End it and remove what it needed."""


class Session:
    """One run of a command under the instrument.

    Args:
        command: any launch command, unchanged.
        cwd: its working directory; the current one when None.
        env: its environment; that of this process when None.
        stdin: `inherit`, or `silent` for an open pipe that never delivers.
        patience: seconds after which a rank that uses no CPU and does not move is a suspicion.
        max_seconds: how long the job may run; None for as long as it takes.
        stop_on_suspicion: end the run when a suspicion arises.
        keep_running: go on after the verdict until the job ends or `stop` is called.
        record: file that the stream of snapshots is written to, for replay.
        memory_limit: how much memory the job may take; as much as there is when None.

    Attributes:
        snapshot, verdict: the newest ones; report: the result, once the run is over.
        logs: what the processes have printed.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: Literal["inherit", "silent"] = "silent",
        patience: float = 30.0,
        max_seconds: float | None = None,
        stop_on_suspicion: bool = False,
        keep_running: bool = False,
        record: Path | None = None,
        memory_limit: Limit | None = None,
    ) -> None:
        self.command = tuple(command)
        self.cwd = (cwd or Path.cwd()).resolve()
        self.env = env
        self.stdin: Literal["inherit", "silent"] = stdin
        self.patience = patience
        self.max_seconds = max_seconds
        self.stop_on_suspicion = stop_on_suspicion
        self.keep_running = keep_running
        self.memory_limit = memory_limit
        self.snapshot: Snapshot | None = None
        self.verdict: Verdict | None = None
        self.report: Report | None = None
        self.fault: BaseException | None = None
        self.logs = Logs()
        self._recorder = Recorder(record) if record is not None else None
        self._listeners: list[Callable[[Event], None]] = []
        self._failed: list[Callable[[Event], None]] = []
        self._history: deque[Snapshot] = deque(maxlen=HISTORY)
        self._limit: Enforcer | None = None
        self._stop = threading.Event()
        self._over = threading.Event()
        self._interrupted = False
        self._first_rank: float | None = None
        self._failed_at: float | None = None
        self._proved_at: float | None = None

    def start(self) -> Session:
        """Start the command and the supervisor thread.

        Raises:
            LaunchError: the command cannot be started; nothing is left running.
        """
        started = self._begin()
        try:
            if self._limit is not None:
                self._limit.watch(started)
            thread = threading.Thread(
                target=self._supervise, args=(started,), name=f"run {started.run_id}", daemon=True
            )
            thread.start()
        except BaseException:
            self._close(started)
            raise
        return self

    def _begin(self) -> Job:
        clear_up()
        try:
            self._limit = enforcer(self.memory_limit) if self.memory_limit else None
        except LimitError as problem:
            raise LaunchError(str(problem)) from problem
        return launch(self.command, cwd=self.cwd, env=self.env, stdin=self.stdin, limit=self._limit)

    def subscribe(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with every event, on the supervisor thread.

        Whatever it raises is logged the first time, and changes nothing for the job.
        """
        self._listeners.append(listener)

    @property
    def recording_problem(self) -> str | None:
        """Why the recording is not complete, None when it is."""
        return self._recorder.problem if self._recorder is not None else None

    def stop(self) -> None:
        """Ask for the end of the run and return at once; the report says it was interrupted."""
        if self.report is None:
            self._interrupted = True
        self._stop.set()

    def wait(self, timeout: float | None = None) -> Report:
        """The report, when the run is over and nothing of it is left.

        Raises:
            TimeoutError: it is not over within `timeout` seconds.
            BaseException: whatever went wrong inside the instrument.
        """
        if not self._over.wait(timeout):
            raise TimeoutError(f"the run is not over after {timeout} s")
        if self.fault is not None:
            raise self.fault
        assert self.report is not None
        return self.report

    async def result(self) -> Report:
        """The same as `wait`, for a notebook cell: other cells and buttons stay responsive."""
        loop = asyncio.get_running_loop()
        done = asyncio.Event()
        self.subscribe(lambda event: _wake(loop, done) if isinstance(event, Ended) else None)
        while not self._over.is_set():
            try:
                await asyncio.wait_for(done.wait(), timeout=0.5)
            except TimeoutError:
                continue
        return self.wait()

    def _supervise(self, started: Job) -> None:
        try:
            observer = Observer(started, self.command, self.cwd, self.stdin, self._limit)
            try:
                self._watch(started, observer)
            finally:
                observer.close()
        except BaseException as fault:
            self.fault = fault
        finally:
            self._close(started)
            if self._recorder is not None:
                self._recorder.close()
            self._over.set()
            if self.report is not None:
                self._tell(Ended(self.report))

    def _close(self, started: Job) -> None:
        started.close()
        if self._limit is not None:
            self._limit.close()

    def _watch(self, started: Job, observer: Observer) -> None:
        decided: Report | None = None
        while True:
            stopping = self._stop.wait(EVERY)
            snapshot = observer.sample()
            self._history.append(snapshot)
            if self._recorder is not None:
                self._recorder.add(snapshot)
            out_of_time = self.max_seconds is not None and snapshot.time >= self.max_seconds
            if self._first_rank is None and any(v.process for v in snapshot.ranks):
                self._first_rank = snapshot.time
            verdict = self._diagnose(final=False)
            over = _is_over(snapshot)
            settled = self._settled(verdict, snapshot)
            if out_of_time or self.stop_on_suspicion:
                last = self._diagnose(final=True)
                if out_of_time or verdict_by_patience(last):
                    verdict = last
            self.snapshot, self.verdict = snapshot, verdict
            self._relay(started, snapshot)
            self._tell(Sample(snapshot, verdict))
            if decided is None and (settled or out_of_time or over or verdict_by_patience(verdict)):
                decided = self._report(verdict, snapshot)
                self._tell(Decided(decided))
            if stopping and decided is None:
                decided = self._report(verdict, snapshot)
            if stopping or over or out_of_time or (decided is not None and not self.keep_running):
                break
        self._relay(started, snapshot, last=True)
        started.stop()
        self.report = decided

    def _diagnose(self, *, final: bool) -> Verdict:
        return diagnose(tuple(self._history), patience=self.patience, final=final)

    def _settled(self, verdict: Verdict, snapshot: Snapshot) -> bool:
        """True when a verdict will not change any more.

        A proved hang is final, once the ranks that are still starting have come to where they will
        stand, or have had `SETTLE` seconds for it. An error waits until every other process has ended or
        is blocked unchanged, so that it is the same each time, and until a launcher that starts failed
        ranks anew has done so as often as it may.
        """
        if verdict.outcome == "running":
            self._failed_at = self._proved_at = None
            return False
        if verdict.outcome == "ok":
            return _is_over(snapshot)
        if verdict.outcome == "hang" and not _anything_failed(snapshot):
            if self._proved_at is None:
                self._proved_at = snapshot.time
            late = snapshot.time - self._proved_at >= SETTLE
            return verdict.proved and (late or not _starting(snapshot))
        if snapshot.job.restarts and snapshot.job.ended is None:
            return False
        if self._failed_at is None:
            self._failed_at = snapshot.time
        settle = SETTLE_QUIET if verdict.cause == "duplicate-rank" else SETTLE
        if _is_over(snapshot) or snapshot.time - self._failed_at >= settle:
            return True
        return snapshot.time - self._failed_at >= STILL and _rests(snapshot)

    def _report(self, verdict: Verdict, snapshot: Snapshot) -> Report:
        return reports.build(
            verdict,
            snapshot,
            interrupted=self._interrupted,
            first_rank=self._first_rank,
            stall=verdict.since,
            verdict_at=snapshot.time,
        )

    def _relay(self, started: Job, snapshot: Snapshot, *, last: bool = False) -> None:
        if started.folder is None:
            return
        for label, line in self.logs.read(started.folder, started.pid, snapshot, last=last):
            self._tell(Output(label, line))

    def _tell(self, event: Event) -> None:
        for listener in list(self._listeners):
            try:
                listener(event)
            except BaseException:  # even a SystemExit is not to end the job
                if listener not in self._failed:
                    self._failed.append(listener)
                    _log.exception(
                        "The run goes on, although %r, which follows it, has failed.", listener
                    )


class Attachment(Session):
    """A session on a job that is running: it watches for some seconds and leaves it as it is.

    Args:
        pid: the launcher, any rank, or any process of theirs.
        patience: seconds without CPU or movement after which a rank is suspect.

    Raises:
        AttachError: there is no such job, or it cannot be looked at.
    """

    def __init__(self, pid: int, *, patience: float = ATTACHED_PATIENCE) -> None:
        self._job = find_job(pid)
        super().__init__(self._job.command, cwd=self._job.cwd, patience=patience, stdin="inherit")
        self._since = time.time() - self._job.started
        self.max_seconds = self._since + max(patience + 1.0, ATTACHED_LEAST)

    def _begin(self) -> Job:
        clear_up(process.pid for process in self._job.processes())
        return self._job

    def _settled(self, verdict: Verdict, snapshot: Snapshot) -> bool:
        if snapshot.job.ended is not None:
            return True
        watched = snapshot.time - self._since
        if verdict.outcome == "running":
            return watched >= ATTACHED_LEAST and not _anybody_rests(snapshot)
        return verdict.proved

    def _report(self, verdict: Verdict, snapshot: Snapshot) -> Report:
        """When the stall began is unknown: it was there before anybody looked."""
        if verdict.outcome == "running" and snapshot.job.ended is not None:
            verdict = replace(verdict, summary=ENDED)
        report = super()._report(verdict, snapshot)
        started = [v.process.started for v in snapshot.ranks if v.process is not None]
        return replace(report, stall=None, first_rank=min(started, default=None))


def clear_up(spared: Iterable[int] = ()) -> None:
    """Remove what was left behind by runs before, except for the run that one of these pids is part of.

    A failure to do so is logged: the new run has no part in it.
    """
    try:
        reap_leftovers(spared)
    except Exception as problem:
        _log.warning("What was left behind by runs before may still be there: %r", problem)


def verdict_by_patience(verdict: Verdict) -> bool:
    """True for an outcome that only patience supports."""
    return verdict.outcome == "hang" and not verdict.proved


def _is_over(snapshot: Snapshot) -> bool:
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


def _anything_failed(snapshot: Snapshot) -> bool:
    """True when a rank has ended otherwise than with exit code 0."""
    return any(
        view.process is not None and not view.process.alive and view.process.exit_code != 0
        for view in snapshot.ranks
    )


def _starting(snapshot: Snapshot) -> bool:
    """True while a rank has not come to the user's code."""
    return any(
        view.process is not None and view.process.alive and view.state in ("starting", "importing")
        for view in snapshot.ranks
    )


def _rests(snapshot: Snapshot) -> bool:
    """True when nobody can wake the ranks that are left, and no launcher is about to end the job."""
    left = {v.rank for v in snapshot.ranks if v.process is not None and v.process.alive}
    return (
        bool(left)
        and left <= Graph.of(snapshot).stuck
        and all(
            not launcher.alive or launcher.still >= STILL or bool(launcher.waits)
            for launcher in snapshot.launchers
        )
    )


def _wake(loop: asyncio.AbstractEventLoop, done: asyncio.Event) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(done.set)


def _anybody_rests(snapshot: Snapshot) -> bool:
    """True while some rank neither moves nor uses CPU, so that watching on may tell more."""
    views = [view.process for view in snapshot.ranks if view.process is not None and view.process.alive]
    return any(min(view.still, view.idle) >= STILL for view in views)
