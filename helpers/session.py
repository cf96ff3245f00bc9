"""One run, from command to Report: launch, observe, diagnose, report, on a supervisor thread."""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec
from msgspec.structs import replace

from .diagnose import coupling
from .diagnose.accounting import Accounting
from .diagnose.diagnose import diagnose
from .diagnose.nodes import judge, with_rest
from .diagnose.one_job import of_one_job
from .diagnose.settling import HISTORY, Ruling, Settling, SettlingOfAttached, patience_at_end
from .launch.attach import PATIENCE_ATTACHED, find_job
from .launch.launch import AT_ONCE, Ending, LaunchError, clear_up, launch
from .launch.memory_limit import Enforcer, Limit, LimitError, enforcer
from .launch.output_pipes import OutputPipes
from .model.clauses import every_clause, verb
from .model.facts import Report, Snapshot, Verdict
from .model.wording import place, sentence
from .observe import locks
from .observe.daemons import daemons
from .observe.logs import Logs
from .observe.look import AnyQuestion, Look, Printed, Watched, merged
from .observe.observer import Observer
from .observe.recording import Keeper
from .observe.relay import Relay, Sink
from .observe.sampler import Running, Sampler
from .report import report as reports

if TYPE_CHECKING:
    from .artifacts.artifacts import Artifacts

EVERY, SHARE, LONGEST = 0.22, 0.01, 0.6
"""Seconds between two looks at the job. A look that takes more than this share of a processor puts off
the next one, but never beyond the last of these figures, as in the beacon (`beacon.LOOK_SHARE`)."""

SHOWN = 0.5
"""Seconds that a job which is to be ended waits until what it has printed is passed on."""

HELD = "the job held the lock file {path} when it was ended; remove it before the next run: rm {path}"

IN_PASSING = frozenset((signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH))
"""Signals after which a job goes on: none of them is the last moment for a report."""

LOOKS = 3
"""Looks that are taken in a row, at most, while each brings up something more to find out."""

NOTHING_WRONG = (
    "What was read shows neither a failure nor ranks that wait for each other; how the job ended is "
    "not in it."
)

_log = logging.getLogger(__name__)


class Sample(msgspec.Struct, frozen=True):
    """A new look at the job, and what it means so far."""

    snapshot: Snapshot
    verdict: Verdict


class Ended(msgspec.Struct, frozen=True):
    """The run is over and nothing of it is left."""

    report: Report


class Decided(msgspec.Struct, frozen=True):
    """The verdict has been reached, while the job goes on (`keep_running`)."""

    report: Report


class Signalled(msgspec.Struct, frozen=True):
    """A signal has been passed to the job; this is what is known of it then."""

    report: Report


Event = Sample | Ended | Decided | Signalled


class Job(Running, Protocol):
    """A running job, as `helpers.launch.launch.Launch` is one."""

    run_id: str

    @property
    def output(self) -> OutputPipes | None:
        """What its processes print; None for a job that was started without pipes."""

    def sessions(self) -> dict[int, int]:
        """The session of each of its processes that has another one than its command."""

    def signal(self, number: int, received: float) -> None:
        """Pass a signal to it, where it is not known to have got that."""

    def stop(self, ending: Ending = AT_ONCE) -> None:
        """End it, where ending it is ours."""

    def close(self) -> None:
        """End it and remove what it needed."""


class Eyes(Protocol):
    """What looks at a job, as `helpers.observe.sampler.Sampler` does."""

    watched: Watched

    def look(self, wanted: Collection[AnyQuestion] = ()) -> Look:
        """Look once, and find out what is wanted."""

    def close(self) -> None:
        """End what looks on in the background."""


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
        stop_all: end also what a job leaves running on purpose when it ends well.
        sink: where every byte goes that the job prints; nowhere when None.
        memory_limit: how much memory the job may take; as much as there is when None.
        start_job, look_at, pause: what starts the job, what looks at it, and what lets seconds pass
            between two looks and returns True when the run is to stop; real ones when None.

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
        stop_all: bool = True,
        sink: Sink | None = None,
        memory_limit: Limit | None = None,
        start_job: Callable[[], Job] | None = None,
        look_at: Callable[[Job], Eyes] | None = None,
        pause: Callable[[float], bool] | None = None,
    ) -> None:
        self.command = tuple(command)
        self.cwd = cwd or Path.cwd()
        self.env = env
        self.stdin: Literal["inherit", "silent"] = stdin
        self.keep_running = keep_running
        self.stop_all = stop_all
        self.sink = sink
        self.memory_limit = memory_limit
        self.snapshot: Snapshot | None = None
        self.verdict: Verdict | None = None
        self.logs = Logs()
        self.settling = Settling(
            patience=patience, max_seconds=max_seconds, stop_on_suspicion=stop_on_suspicion
        )
        self._keepers: list[Keeper] = []
        self._listeners: list[Callable[[Event], None]] = []
        self._failed: list[Callable[[Event], None]] = []
        self._limit: Enforcer | None = None
        self._stop = threading.Event()
        self._done: Future[Report] = Future()
        self._interrupted = False
        self._job: Job | None = None
        self._signals: dict[int, list[float]] = {}
        self._reported: set[int] = {*IN_PASSING}
        self._first_rank: float | None = None
        self._ends_at = math.inf
        self._start_job, self._look_at, self._pause = start_job, look_at, pause

    @classmethod
    def attach(cls, pid: int, *, patience: float = PATIENCE_ATTACHED, least: float = 0.0) -> Session:
        """A session on a job that is running: it watches for some seconds and leaves it as it is.

        Args:
            pid: the launcher, any rank, or any process of theirs.
            patience: seconds without CPU or movement after which a rank is suspect.
            least: seconds that it is watched in any case, unless it hangs for certain.

        Raises:
            AttachError: there is no such job, or it cannot be looked at.
        """
        job = find_job(pid)

        def begin() -> Job:
            clear_up(process.pid for process in job.processes())
            return job

        session = cls(job.command, cwd=job.cwd, stdin="inherit", start_job=begin)
        since = time.time() - job.started
        session.settling = SettlingOfAttached(patience=patience, since=since, least=least)
        return session

    @property
    def report(self) -> Report | None:
        """The result, once the run is over and nothing has gone wrong inside the instrument."""
        over = self._done.done() and self._done.exception() is None
        return self._done.result() if over else None

    def start(self) -> Session:
        """Start the command and the supervisor thread.

        Raises:
            LaunchError: the command cannot be started; nothing is left running.
        """
        self._job = started = (self._start_job or self._launch)()
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

    def record(self, keeper: Keeper) -> None:
        """Have every look at the job kept, for a replay. Called before `start`."""
        self._keepers.append(keeper)

    def subscribe(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with every event, on the supervisor thread.

        An exception that it raises is logged, once, and has no effect on the run.
        """
        self._listeners.append(listener)

    def stop(self) -> None:
        """Ask for the end of the run and return at once; the report says it was interrupted."""
        if not self._done.done():
            self._interrupted = True
        self._stop.set()

    def signal(self, number: int, received: float) -> bool:
        """Pass on a signal, which is the job's while that is healthy.

        Args:
            received: `time.monotonic()` when it came.

        Returns:
            False where the job hangs for certain, and is not to get any.
        """
        self._interrupted |= number == signal.SIGINT
        hangs = self.verdict is not None and self.verdict.outcome == "hang" and self.verdict.proved
        if self._job is None or hangs:
            return False
        self._signals[number] = [*self._signals.get(number, ())[:1], received]
        self._job.signal(number, received)
        return True

    def end_within(self, seconds: float) -> None:
        """End the run then, if it is not over."""
        self._ends_at = time.monotonic() + seconds

    def wait(self, timeout: float | None = None) -> Report:
        """The report, when the run is over and nothing of it is left.

        Raises:
            TimeoutError: it is not over within `timeout` seconds.
            BaseException: whatever went wrong inside the instrument.
        """
        return self._done.result(timeout)

    async def result(self) -> Report:
        """The same as `wait`, for a notebook cell: other cells and buttons stay responsive."""
        import asyncio  # here, since a command line that starts a job does without it

        return await asyncio.shield(asyncio.wrap_future(self._done))

    def _launch(self) -> Job:
        self.cwd = self.cwd.resolve()
        clear_up()
        try:
            self._limit = enforcer(self.memory_limit) if self.memory_limit else None
        except LimitError as problem:
            raise LaunchError(str(problem)) from problem
        return launch(self.command, cwd=self.cwd, env=self.env, stdin=self.stdin, limit=self._limit)

    def _sampler(self, job: Job) -> Eyes:
        return Sampler(job, self.command, self.cwd, self.stdin, self._limit, self.logs)

    def _supervise(self, started: Job) -> None:
        try:
            with ExitStack() as at_end:
                for keeper in self._keepers:
                    at_end.callback(keeper.close)
                at_end.callback(self._close, started)
                eyes = (self._look_at or self._sampler)(started)
                at_end.callback(eyes.close)
                relay = None
                if started.output is not None:
                    self.logs.root = started.pid
                    relay = at_end.enter_context(Relay(started.output, self.logs, self.sink))
                report = self._watch(started, eyes, relay)
        except BaseException as fault:
            self._done.set_exception(fault)
        else:
            self._done.set_result(report)
            self._tell(Ended(report))

    def _close(self, started: Job) -> None:
        started.close()
        if self._limit is not None:
            self._limit.close()

    def _watch(self, started: Job, eyes: Eyes, relay: Relay | None) -> Report:
        observer = Observer(eyes.watched)
        for keeper in self._keepers:
            keeper.begin(msgspec.structs.replace(eyes.watched, patience=self.settling.patience))
        decided: Report | None = None
        for stopping in self._turns():
            look, snapshot = _look(eyes, observer)
            ruling = self._take(look, snapshot)
            decided = decided or self._decide(ruling, snapshot, eyes.watched, stopping=stopping)
            if decided is not None and (stopping or ruling.over or not self.keep_running):
                break
        assert decided is not None, "a run that is over has been decided"
        if relay is not None:
            relay.finish(SHOWN)
        return self._end(started, observer, decided)

    def _take(self, look: Look, snapshot: Snapshot) -> Ruling:
        """Judge a snapshot, and pass it and its look on to all that follow the run."""
        for keeper in self._keepers:
            keeper.add(look)
        ruling = self.settling.take(snapshot)
        if self._first_rank is None and any(view.process for view in snapshot.ranks):
            self._first_rank = snapshot.time
        self.snapshot, self.verdict = snapshot, ruling.verdict
        self.logs.take(snapshot)
        self._tell(Sample(snapshot, ruling.verdict))
        return ruling

    def _decide(
        self, ruling: Ruling, snapshot: Snapshot, watched: Watched, *, stopping: bool
    ) -> Report | None:
        """The report of a run that is settled or to stop; a new signal, too, brings out a report."""
        settled, passed = ruling.settled or stopping, {*self._signals}
        if not settled and passed <= self._reported:
            return None
        report = self._report(ruling.verdict, snapshot, watched)
        self._reported |= passed
        if ruling.settled or not settled:
            self._tell(Decided(report) if settled else Signalled(report))
        return report if settled else None

    def _turns(self) -> Iterator[bool]:
        """Let seconds pass between two looks: the more, the more a look takes of a processor.

        Yields:
            Whether the run is to stop.
        """
        used = time.thread_time()
        while True:
            used, before = time.thread_time(), used
            pause = min(max(EVERY, (used - before) / SHARE), LONGEST)
            yield (self._pause or self._stop.wait)(pause) or time.monotonic() >= self._ends_at

    def _end(self, started: Job, observer: Observer, report: Report) -> Report:
        """End the job, and say what is left of it that the user has to know of."""
        snapshot = report.snapshot
        alive = [p for p in (view.process for view in snapshot.ranks) if p is not None and p.alive]
        spared_by_session: dict[int, list[int]] = {}
        if not self.stop_all and report.verdict.outcome == "ok":
            spared_by_session = daemons(started.sessions(), observer.table.rows, observer.identities)
        lock_paths = locks.lock_files(process.pid for process in started.processes()) if alive else ()
        spared = {pid for pids in spared_by_session.values() for pid in pids}
        started.stop(
            Ending(
                launchers=[p.pid for p in snapshot.launchers if p.alive and p.pid not in spared],
                ranks=[process.pid for process in alive if process.stack],
                spared=spared_by_session,
            )
        )
        notes = [_left_running(pids, observer) for pids in spared_by_session.values()]
        notes += [HELD.format(path=path) for path in lock_paths if locks.remains(path)]
        return _with_evidence(report, notes)

    def _report(self, verdict: Verdict, snapshot: Snapshot, watched: Watched) -> Report:
        report = reports.build(
            verdict,
            with_rest(snapshot, verdict),
            interrupted=self._interrupted,
            first_rank=self._first_rank,
            stall=verdict.since,
            verdict_at=snapshot.time,
        )
        passed = [
            f"{signal.Signals(number).name} was passed to the job {_moments(times, watched.start)}"
            for number, times in list(self._signals.items())
        ]
        report = _with_evidence(report, passed)
        if not watched.attached:
            return report
        # The ranks, and a stall, were there before anybody looked.
        started = [view.process.started for view in snapshot.ranks if view.process is not None]
        return replace(report, stall=None, first_rank=min(started, default=None))

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


def _moments(times: Sequence[float], start: float) -> str:
    """`after 3.1 s`; of a signal that came more than once, `after 3.1 s, and last after 9.0 s`."""
    return ", and last ".join(f"after {moment - start:.1f} s" for moment in times)


def _with_evidence(report: Report, more: Sequence[str]) -> Report:
    verdict = report.verdict
    return replace(report, verdict=replace(verdict, evidence=(*verdict.evidence, *more)))


def _left_running(pids: Sequence[int], observer: Observer) -> str:
    """What a job has left running in one session."""
    command = " ".join(observer.table.rows[pids[0]].command)
    numbers = " ".join(map(str, pids))
    return f"left running: pid {numbers}, `{command}`; end it with `kill {numbers}`"


def _look(eyes: Eyes, observer: Observer) -> tuple[Look, Snapshot]:
    """Look as many times as it takes until nothing more is to be found out.

    Returns:
        All looks in one, and what is known after them.
    """
    merged_look = None
    for _ in range(LOOKS):
        wanted = frozenset(observer.wanted)
        look = eyes.look(wanted)
        snapshot = observer.take(look)
        merged_look = look if merged_look is None else merged(merged_look, look)
        if all(question in wanted or isinstance(question, Printed) for question in observer.wanted):
            break  # what ranks have printed is in time for the next look
    assert merged_look is not None
    return merged_look, snapshot


def report_of(history: Sequence[Snapshot], patience: float = 30.0, *, attached: bool = False) -> Report:
    """The report of a recorded run.

    Args:
        history: all its snapshots, at least one.
        patience: seconds after which a rank that uses no CPU and does not move is a suspicion.
        attached: True for a job that was running before anybody looked.
    """
    newest = history[-1]
    patience = patience_at_end(newest, patience, attached=attached)
    accounting = Accounting()
    for snapshot in history:
        accounting.take(snapshot)
    verdict = accounting.added(diagnose(history[-HISTORY:], patience=patience, final=True))
    started = (moment.time for moment in history if any(view.process for view in moment.ranks))
    return reports.build(
        verdict,
        with_rest(newest, verdict),
        first_rank=next(started, None),
        stall=verdict.since,
        verdict_at=newest.time,
    )


def _stands(snapshot: Snapshot) -> Iterator[str]:
    """Where ranks are, as stack dumps show it."""
    processes = {view.rank: view.process for view in snapshot.ranks if view.rank is not None}
    innermost = {
        rank: process.stack[0]
        for rank, process in processes.items()
        if process is not None and process.alive and process.stack
    }
    clauses = {
        rank: verb("is", "are", f"in {frame.function} at {place(frame)}")
        for rank, frame in innermost.items()
    }
    return map(sentence, every_clause(clauses))


def report_of_artifacts(artifacts: Artifacts) -> tuple[Report, Sequence[Snapshot]]:
    """The report of a job by what it has left, and what was known of it; files tell no seconds.

    Raises:
        NothingError: nothing was recognised.
        RecordingError: a recording cannot be replayed.
    """
    if artifacts.are_one_run:
        recording = artifacts.run()
        history, watched = tuple(recording.snapshots()), recording.watched
        return report_of(history, watched.patience, attached=watched.attached), history
    parts, left_out = of_one_job(artifacts.parts())
    verdict, newest = judge(parts)
    missing = (*newest.not_seen, *left_out, *artifacts.not_seen(newest, verdict))
    newest = replace(newest, not_seen=missing, timed=False)
    quotes = (
        ()
        if newest.telling and verdict.evidence == newest.telling
        else artifacts.quotes(verdict.culprits)
    )
    paces = [part.pace for part in parts if part.pace is not None]
    slow = coupling.slow(paces, newest.job.world_size or 0) if verdict.outcome != "hang" else None
    verdict = replace(verdict, since=None, evidence=quotes or verdict.evidence, slow=slow)
    if (verdict.outcome, verdict.cause) == ("running", "none"):
        evidence = verdict.evidence or tuple(_stands(newest))
        verdict = replace(verdict, summary=NOTHING_WRONG, evidence=evidence)
    return reports.build(verdict, newest), (replace(newest, time=newest.time - 1.0), newest)
