"""Looks at a running job: everything that is read of it from outside is read here."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import psutil
from msgspec.structs import replace

from ..beacon import native
from ..beacon.launch_variables import ENVIRONMENT as OF_LAUNCHERS
from ..beacon.nccl import DUMPS, PIPE
from ..job_files import ask, read, text
from ..launch.guardian import session_of
from ..launch.memory_limit import Enforcer
from ..launch.processes import port_owner
from ..model.facts import Stdin
from ..model.redaction import redacted_words
from . import locks, memory, pipes, sockets, tracebacks
from .identity import TASKS
from .interpreter import Interpreter, with_torch
from .logs import Logs
from .look import (
    AnyQuestion,
    Cell,
    Dump,
    Ends,
    Entries,
    ErrorFile,
    Failure,
    Held,
    Holder,
    Issued,
    Look,
    Movement,
    NativeStack,
    Output,
    Owner,
    Peer,
    Printed,
    Program,
    Source,
    Store,
    SystemCall,
    Threads,
    Usage,
    Watched,
)
from .movement import movements
from .native_stacks import NativeStacks
from .nccl_dumps import NcclDumps
from .notebooks import Notebooks
from .probe import Probe
from .pyspy import Dumps
from .records import Beacons

SILENCE = 20.0
"""Seconds for which an end that has not answered counts as silent: one that gives up and connects anew,
as gloo does, has to send for seven seconds before that is known again (`sockets.REPEATED`)."""

SEARCH_EVERY = 1.0
"""Seconds between two searches for the holder of a lock, or of the end of a pipe."""

DEBUG_PROBE = str(Path(__file__).with_name("debug_probe.py"))
STORE_PROBE = str(Path(__file__).with_name("store_probe.py"))
"""Programs of their own, which are not imported here."""

STORE_EVERY = 10.0
"""Seconds between two looks into a store."""

ENVIRONMENT = frozenset((*OF_LAUNCHERS, *TASKS, "STUCK_RANKS_PATH", "PYTHONPATH", PIPE, *DUMPS))
"""The variables of a process that a look tells; others may be secrets."""

FREEZER = ("__refrigerator", "do_freezer_trap")
"""Where the kernel keeps a thread whose control group is frozen: kernel/freezer.c, kernel/signal.c."""


class Running(Protocol):
    """What the sampler needs of a `helpers.launch.launch.Launch`."""

    pid: int
    started: float

    @property
    def session(self) -> int:
        """The session in which its command was started; 0 when unknown."""

    @property
    def folder(self) -> Path | None:
        """Where beacons report and output goes; None for a job that was started without them."""

    def poll(self) -> int | None:
        """Wait status of the command, None while it runs."""

    def reaped(self) -> dict[int, int]:
        """Wait status of every process the guardian has waited for."""

    def processes(self) -> list[psutil.Process]:
        """The processes of the run that exist."""


class Sampler:
    """Looks at one running command.

    Args:
        launch: the running command.
        command: its words, as the user gave them.
        cwd: its working directory, without links.
        stdin: its standard input.
        limit: who limits the memory of the job.
        logs: what the processes have printed.

    Attributes:
        watched: what stays the same for the whole run.
    """

    def __init__(
        self,
        launch: Running,
        command: Sequence[str],
        cwd: Path,
        stdin: Stdin,
        limit: Enforcer | None = None,
        logs: Logs | None = None,
    ) -> None:
        self.watched = Watched(
            command=redacted_words(command),
            cwd=str(cwd),
            pid=launch.pid,
            start=time.monotonic() - (time.time() - launch.started),
            host=socket.gethostname(),
            stdin=stdin,
            attached=launch.folder is None,
            interfaces=sockets.interfaces(),
        )
        self._launch = launch
        self._limit = limit
        self._logs = logs or Logs()
        self._kills = memory.Kills(launch.pid)
        self._input = ""
        self._trackers: dict[int, _Tracker] = {}
        self._ended: dict[int, int] = {}
        self._sockets = sockets.Sockets()
        self._beacons = Beacons(launch.folder)
        self._dumps = Dumps()
        self._native_stacks = NativeStacks()
        self._nccl_dumps = NcclDumps()
        self._notebooks = Notebooks()
        self._probes: dict[Store | Issued, tuple[Probe | None, float]] = {}
        self._sources: dict[str, tuple[float, tuple[str, float]]] = {}
        self._searches: dict[AnyQuestion, tuple[float, Any]] = {}
        self._last_answers: dict[AnyQuestion, Any] = {}

    def look(self, wanted: Collection[AnyQuestion] = ()) -> Look:
        """Look once, and find out what is wanted."""
        status = self._launch.poll()
        with suppress(OSError):
            self._input = self._input or os.readlink(f"/proc/{self._launch.pid}/fd/0")
        reports = tuple(self._beacons.read())
        limit = self._limit.view() if self._limit is not None else None
        programs, alive = self._look_at_processes(stalls=limit is not None and limit.full)
        return Look(
            time=time.monotonic(),
            status=status,
            reaped=self._ended | self._launch.reaped(),
            programs=tuple(programs),
            alive=tuple(alive),
            told=reports,
            answers=tuple(self._answers(wanted)),
            input=self._input,
            memory_kills=limit.kills if limit is not None else self._kills.count(),
            limit=limit,
        )

    def close(self) -> None:
        """End what runs in the background."""
        self._native_stacks.close()
        for probe, _ in self._probes.values():
            if probe is not None:
                probe.close()

    def _look_at_processes(self, stalls: bool) -> tuple[list[Program], list[Usage]]:
        """Every process that exists, and of those that are new, or have changed, what they run.

        Args:
            stalls: whether to find out which are stalled because memory is short.
        """
        now = time.monotonic()
        programs, alive = [], []
        processes = self._launch.processes()
        opened = self._sockets.look([process.pid for process in processes], now)
        for process in processes:
            with suppress(psutil.Error):
                tracker = self._trackers.get(process.pid)
                if tracker is None or tracker.process != process:
                    number = 0 if tracker is None else tracker.program.number + 1
                    tracker = _Tracker(process, now, number, self._launch.session)
                    self._trackers[process.pid] = tracker
                usage = tracker.usage(now, None if opened is None else opened.get(process.pid, ()))
                if usage is None:
                    continue
                if not tracker.reported:
                    tracker.reported = True
                    programs.append(tracker.program)
                stalled = stalls and memory.is_stalled(process.pid)
                alive.append(replace(usage, stalled=True) if stalled else usage)
        present = {usage.pid for usage in alive}
        for pid in self._trackers.keys() - present - self._ended.keys():
            if (status := zombie_status(pid)) is not None:
                self._ended[pid] = status
        return programs, alive

    def _answers(self, wanted: Collection[AnyQuestion]) -> Iterator[tuple[AnyQuestion, Any]]:
        """Those that are new or have changed since the look before."""
        previous = self._last_answers
        self._last_answers = {
            question: previous[question] for question in wanted if question in previous
        }
        pids = [question.pid for question in wanted if isinstance(question, Dump)]
        self._dumps.look([self._trackers[pid].program for pid in pids if pid in self._trackers])
        for question in wanted:
            try:
                answer = self._answer(question)
            except TimeoutError:  # a name does not answer: what it has said before stays
                continue
            except OSError:
                answer = None
            if answer is PENDING:
                continue
            if question not in self._last_answers or self._last_answers[question] != answer:
                self._last_answers[question] = answer
                yield question, answer

    def _answer(self, question: AnyQuestion) -> Any:
        match question:
            case Output() | Printed() | Failure() | ErrorFile():
                return self._text(question)
            case Source(path):
                return self._source(path)
            case Cell(pid, file):
                return self._notebooks.cell(pid, file)
            case Holder() | Held() | Ends():
                return self._search(question)
            case Owner(port):
                return port_owner(port, self._trackers)
            case Peer(pid, target):
                return sockets.peer(pid, target)
            case Dump(pid):
                return self._dumps.answer(pid) or PENDING
            case Entries() | NativeStack() | Store() | Issued():
                answer = self._in_background(question)
                return PENDING if answer is None else answer
            case Threads(pid):
                return self._trackers[pid].threads() if pid in self._trackers else PENDING
            case SystemCall(pid):
                return native.blocking_call(pid, str(pid))
            case Movement(pid, threads):
                return movements(pid, threads)

    def _text(self, question: Output | Printed | Failure | ErrorFile) -> Any:
        """What a process, or its beacon, has written."""
        match question:
            case Output(pid):
                return self._logs.end(pid)
            case Printed(pid):
                return self._logs.newest(pid)
            case Failure(pid):
                return self._beacons.failure(pid)
            case ErrorFile(path):
                return tracebacks.pickled_text(read(path)[0])

    def _in_background(self, question: Entries | NativeStack | Store | Issued) -> Any:
        """What takes longer than a look; None until it is there."""
        match question:
            case Entries():
                return self._nccl_dumps.answer(question)
            case NativeStack():
                return self._native_stacks.answer(question)
            case _:
                return self._probe(question)

    def _source(self, path: str) -> tuple[str, float]:
        """What is in a file, read again only when it has been changed."""
        entry = self._sources.get(path)
        if entry is None or entry[0] != ask(os.stat, path).st_mtime:
            content, changed = text(path)
            then = time.monotonic() - time.time() + changed
            self._sources[path] = entry = changed, (content, then)
        return entry[1]

    def _search(self, question: Holder | Held | Ends) -> Any:
        """What the newest search through the tables of all processes has found."""
        now = time.monotonic()
        search_time, answer = self._searches.get(question, (0.0, None))
        if now - search_time > SEARCH_EVERY:
            match question:
                case Holder(op, path, waiter):
                    answer = locks.holder(op, path, waiter)
                case Held(pid):
                    answer = locks.held_against(pid)
                case Ends(pid, target, reads):
                    answer = pipes.other_ends(pid, target, reads=reads)
            self._searches[question] = (now, answer)
        return answer

    def _probe(self, question: Store | Issued) -> Any:
        """What the newest look into a store has found; it goes on in the background."""
        probe, next_at = self._probes.get(question, (None, 0.0))
        if probe is None:
            if time.monotonic() >= next_at:
                self._probes[question] = self._new_probe(question), time.monotonic() + STORE_EVERY
            return None
        answer = probe.result()
        if answer is None:
            return None
        probe.close()
        self._probes[question] = None, next_at
        return answer or None

    def _new_probe(self, question: Store | Issued) -> Probe:
        """A new look; only that into a store needs torch."""
        if isinstance(question, Issued):
            return Probe(question.address, DEBUG_PROBE, Interpreter())
        processes = (tracker.process for tracker in self._trackers.values())
        return Probe(question.address, STORE_PROBE, with_torch(processes))


PENDING = object()
"""No answer yet."""


class _Tracker:
    """One process, from look to look."""

    def __init__(self, process: psutil.Process, now: float, number: int, session: int) -> None:
        self.process = process
        self.program = Program(
            pid=process.pid,
            number=number,
            parent=process.ppid(),
            started=now - (time.time() - process.create_time()),
            command=redacted_words(process.cmdline()),
            environment=_environment(process),
            apart=session != 0 and session_of(process.pid) not in (session, 0),
            exe=native.executable(str(process.pid)),
        )
        self.reported = False
        self._unanswered: dict[str, float] = {}
        self._cpu = self._cpu_of_threads = 0.0
        self._threads: list[tuple[int, float, str]] = []

    def usage(self, now: float, opened: Sequence[sockets.Socket] | None) -> Usage | None:
        """What it does now; None for one that has ended.

        Args:
            opened: its TCP sockets; None where they have not been looked at.
        """
        process = self.process
        with process.oneshot():
            state = process.status()
            if state == psutil.STATUS_ZOMBIE:
                return None
            times = process.cpu_times()
            memory_used = process.memory_info()
        command, exe = redacted_words(process.cmdline()), native.executable(str(process.pid))
        if command and (command, exe) != (self.program.command, self.program.exe):
            environment = _environment(process)
            self.program = replace(self.program, command=command, exe=exe, environment=environment)
            self.reported = False
        self._cpu = times.user + times.system
        stopped = state in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
        function = _proc(f"{process.pid}/wchan")
        listening = {sock.local for sock in opened or () if sock.state == psutil.CONN_LISTEN}
        return Usage(
            pid=process.pid,
            cpu=self._cpu,
            memory=memory_used.rss,
            private=memory_used.rss - memory_used.shared if hasattr(memory_used, "shared") else None,
            stopped=stopped,
            traced=stopped and _tracer(process.pid) != 0,
            frozen=function in FREEZER,
            waits_for_child=function in ("do_wait", "wait_consider_task"),
            sockets=tuple(sorted(listening)) if opened is not None else None,
            unanswered=self._unanswered_of(opened, now) if opened is not None else (),
        )

    def threads(self) -> list[tuple[int, float, str]]:
        """What each thread has used, read again when the process has used more than before."""
        pid = self.process.pid
        if self._cpu != self._cpu_of_threads or not self._threads:
            with suppress(psutil.Error):
                self._threads = [
                    (
                        task.id,
                        task.user_time + task.system_time,
                        _proc(f"{pid}/task/{task.id}/comm").strip(),
                    )
                    for task in self.process.threads()
                ]
                self._cpu_of_threads = self._cpu
        return self._threads

    def _unanswered_of(self, opened: Sequence[sockets.Socket], now: float) -> tuple[str, ...]:
        """Ends that do not answer; one does again once a connection to it stands and is not silent."""
        for sock in opened:
            if sock.remote is None or sock.remote[0] == sock.local[0]:
                continue
            remote = f"{sock.remote[0].removeprefix('::ffff:')}:{sock.remote[1]}"
            if sock.silent:
                self._unanswered[remote] = now
            elif sock.state == psutil.CONN_ESTABLISHED:
                self._unanswered.pop(remote, None)
        self._unanswered = {
            remote: then for remote, then in self._unanswered.items() if now - then <= SILENCE
        }
        return tuple(sorted(self._unanswered))


def zombie_status(pid: int) -> int | None:
    """Wait status of a process that has not been waited for yet, from its stat line (Linux)."""
    fields = _proc(f"{pid}/stat").rpartition(")")[2].split()
    return int(fields[49]) if len(fields) > 49 and fields[0] == "Z" else None


def _proc(path: str) -> str:
    """What is in a file of `/proc` (Linux); empty where it cannot be read."""
    with suppress(OSError):
        return Path("/proc", path).read_text()
    return ""


def _tracer(pid: int) -> int:
    """Pid of the debugger of a process (Linux), 0 without one."""
    lines = _proc(f"{pid}/status").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("TracerPid:")), 0)


def _environment(process: psutil.Process) -> Mapping[str, str] | None:
    with suppress(psutil.Error, OSError):
        return {name: value for name, value in process.environ().items() if name in ENVIRONMENT}
    return None
