"""The beacon's own thread: looks at this process five times a second and writes its record.

The thread is a raw one (`_thread`), so that `threading.enumerate()` and `active_count()` of the job
do not know it. It blocks every signal, as does the thread of the dead man's switch that it starts: a
signal to the process is for the job's own threads. It stops before every fork and starts again after
it, in parent and child: a forked child never inherits a half-done beacon, and Python sees no extra
thread at the fork.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` would load `enum` into the job
import _thread
import atexit
import contextlib
import fcntl
import os
import sys
import time
from types import FrameType
from typing import Any, Dict, List, Optional

from . import deadman, exits, family, joining, output, stacks, threads, torch_names
from . import format as records

READ_AFTER, READ_AT_LAST = 0.35, 1.0
"""Seconds a collective must be pending before its entries are read: normally, and in any case."""

READ_SHARE = 0.01
"""Share of the time that reading entries on short stalls may take."""

LOOK_SHARE, LONGEST_PAUSE = 0.01, 0.6
"""Share of the time that looks may take: with hundreds of threads they come less often."""

AT_ONCE = 16
"""Threads whose system call is looked up anew in one look; the main thread is always among them."""

OUT_OF_THE_WAY = 200
"""Lowest number of the beacon's descriptor: a job may count on the lowest free ones."""

_kill = os.kill


class Agent:
    """The beacon of one process; made anew in a forked child.

    Args:
        inherited: the process group that a forked child has in its memory without having joined it.
    """

    def __init__(self, folder: str, guardian: int, inherited: Any = None) -> None:
        self.folder = folder
        self.guardian = guardian
        self.inherited = inherited
        self.pid = os.getpid()
        self.path = records.record_path(folder, self.pid)
        self.started = time.monotonic()
        self.threads: Dict[int, threads.Watched] = {}
        self.turn = 0
        self.unseen: List[str] = []
        self.asked = False
        self.flight: Optional[Dict[str, Any]] = None
        self.flight_seen: Optional[bytes] = None
        self.flight_since = self.started
        self.flight_next = 0.0
        self.error: Optional[Dict[str, Any]] = None
        self.workers: Dict[str, int] = {}
        self.spawned: Dict[str, int] = {}
        self.joining: List[stacks.Entry] = []
        self.last: Optional[Dict[str, Any]] = None
        self.wake = _thread.allocate_lock()
        self.running = _thread.allocate_lock()
        self.stopping = False
        self.stacks_file = -1
        self.stacks_stat: Optional[os.stat_result] = None

    def start(self) -> None:
        """Start the thread."""
        self.stopping = False
        if not self.wake.locked():
            self.wake.acquire()
        self.running.acquire()
        unblocked = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        try:
            self._arm()
            _thread.start_new_thread(self._run, ())
        except RuntimeError:
            self.running.release()
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, unblocked)

    def stop(self) -> None:
        """End the thread and wait for it; a look takes a few milliseconds."""
        self.stopping = True
        if self.wake.locked():
            self.wake.release()
        self.running.acquire()
        self.running.release()
        _slot.disarm()

    def _run(self) -> None:
        mine = _thread.get_ident()
        try:
            pause = records.TICK
            while not self._woken(pause):
                begun = time.thread_time()
                if self.guardian and not _alive(self.guardian):
                    _kill(self.pid, 9)
                self._arm()
                self.look(mine=mine)
                used = time.thread_time() - begun
                pause = min(max(records.TICK, used / LOOK_SHARE), LONGEST_PAUSE)
        finally:
            self.running.release()

    def _woken(self, pause: float) -> bool:
        """Wait so many seconds; True as soon as the thread is to end.

        A long pause may follow a look, but the watch has to stand before torch is imported whole.
        """
        while True:
            step = pause if _watch_joins() else min(pause, records.TICK)
            if self.wake.acquire(timeout=step):
                return True
            pause -= step
            if pause <= 0:
                return False

    def _arm(self) -> None:
        try:
            if not self._stacks_open():
                path = records.stacks_path(self.folder, self.pid)
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                low = os.open(path, flags, 0o600)
                try:
                    self.stacks_file = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, OUT_OF_THE_WAY)
                finally:
                    os.close(low)
                self.stacks_stat = os.fstat(self.stacks_file)
                _slot.catch_crashes(self.stacks_file)
            elif os.fstat(self.stacks_file).st_size:
                os.ftruncate(self.stacks_file, 0)
            _slot.arm(self.stacks_file)
        except OSError:
            _slot.disarm()

    def _stacks_open(self) -> bool:
        """True while the descriptor is ours: a job may close it, and open a file of its own there."""
        if self.stacks_stat is None:
            return False
        try:
            return os.path.samestat(os.fstat(self.stacks_file), self.stacks_stat)
        except OSError:
            return False

    def look(self, mine: int = 0, ended: bool = False) -> None:
        """Write a record of this moment.

        Args:
            mine: the beacon's own thread, which is left out.
            ended: True in the last record of an orderly exit.
        """
        try:
            record = self._record(mine, ended)
        except Exception as problem:
            record = {"v": records.VERSION, "pid": self.pid, "failed": repr(problem)[:500]}
        try:
            if record == self.last:
                os.utime(self.path)
            else:
                records.write(self.path, {**record, "written": time.monotonic()})
                self.last = record
        except OSError:
            records.give_up(self.path)
            self.last = None

    def _record(self, mine: int, ended: bool) -> Dict[str, Any]:
        if not ended:
            self._see_threads(mine)
            self._see_flight()
        if self.error is None:
            self.error = exits.uncaught()
        main = sys.modules.get("__main__")
        return {
            "v": records.VERSION,
            "pid": self.pid,
            "ppid": os.getppid(),
            "started": self.started,
            "python": ".".join(str(part) for part in sys.version_info[:3]),
            "argv": list(getattr(sys, "orig_argv", sys.argv)),
            "cwd": os.getcwd(),
            "main": getattr(main, "__file__", None),
            "env": {key: os.environ[key] for key in records.ENVIRONMENT if key in os.environ},
            "process": family.own_part(),
            "phase": self._phase(),
            "threads": [thread.entry for thread in self.threads.values()],
            "dist": torch_names.process_groups() if self._joined() else None,
            "accelerator": torch_names.accelerator(),
            "flight": self.flight,
            "torch": torch_names.version(),
            "unseen": self._unseen(),
            "workers": dict(self.workers),
            "spawned": dict(self.spawned),
            "joining": self.joining,
            "reaped": dict(exits.reaped),
            "left": list(exits.left),
            "cut_off": list(exits.cut_off),
            "error": self.error,
            "ended": ended,
        }

    def _joined(self) -> bool:
        default = torch_names.default_group()
        return default is not None and default is not self.inherited

    def _unseen(self) -> List[str]:
        """Asked again until the process has joined: by then torch is loaded as a whole."""
        if not self.asked:
            self.asked = self._joined()
            self.unseen = torch_names.unseen(self.asked)
        return self.unseen

    def _see_threads(self, mine: int) -> None:
        now = time.monotonic()
        known = threads.named(mine)
        seen: Dict[int, threads.Watched] = {}
        self.turn += 1
        shifts = 1 + len(known) // AT_ONCE
        for number, (ident, frame) in enumerate(sys._current_frames().items()):
            if ident == mine:
                continue
            name, native_id, is_main = known.get(ident, (f"thread {ident}", None, False))
            thread = self.threads.get(ident) or threads.Watched(now)
            due = is_main or (number + self.turn) % shifts == 0
            thread.look(frame, now, name, native_id, is_main, due)
            self.workers.update((thread.entry["call"] or {}).get("workers", {}))
            self.spawned.update((thread.entry["call"] or {}).get("spawned", {}))
            seen[ident] = thread
        self.threads = seen

    def _see_flight(self) -> None:
        """Read the entries of the Flight Recorder when this rank has issued nothing for some time.

        Reading them takes up to 0.1 s. It happens once for a stall, while the rank waits anyway;
        `READ_SHARE` bounds how much of the time it may take on short stalls.
        """
        status = torch_names.flight_status() if self._joined() else None
        now = time.monotonic()
        if status != self.flight_seen:
            self.flight_seen, self.flight_since, self.flight = status, now, None
            return
        if status is None or self.flight is not None:
            return
        since = max((t.since for t in self.threads.values() if t.entry["main"]), default=now)
        soon = torch_names.pending(status) and now >= self.flight_next
        if now - max(since, self.flight_since) < (READ_AFTER if soon else READ_AT_LAST):
            return
        entries = torch_names.flight_tail()
        self.flight_next = now + (time.monotonic() - now) / READ_SHARE
        self.flight = {"since": self.flight_since, "entries": entries}

    def _phase(self) -> str:
        main = next((thread for thread in self.threads.values() if thread.entry["main"]), None)
        if main is None or not main.entry["frames"]:
            return "starting"
        files = [frame[0] for frame in main.entry["frames"]]
        if any(file.startswith("<frozen importlib") for file in files):
            return "importing"
        return "running" if any(frame[3] for frame in main.entry["frames"]) else "starting"


_slot = deadman.Slot()
_watches_joins = False
_agent: Optional[Agent] = None


def start() -> None:
    """Start the beacon of this process, when a run directory is given in the environment."""
    global _agent
    folder = os.environ.get("STUCK_RANKS_RUN", "")
    if _agent is not None or not os.path.isdir(folder):
        return
    output.separate(folder)
    exits.watch(_note)
    _slot.yield_to_job()
    guardian = int(os.environ.get("STUCK_RANKS_GUARDIAN", "0"))
    _agent = Agent(folder, guardian if _alive(guardian) else 0)
    atexit.register(_at_exit)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_rest, after_in_parent=_resume, after_in_child=_after_in_child)
    _agent.start()


_resting = _thread.RLock()
"""Held by the thread for whose sake the beacon rests: at a fork, or for a record of its own."""

_rests = 0


def _rest() -> None:
    global _rests
    _resting.acquire()
    _rests += 1
    if _rests == 1 and _agent is not None:
        _agent.stop()


def _resume() -> None:
    global _rests
    _rests -= 1
    if _rests == 0 and _agent is not None:
        _agent.start()
    _resting.release()


def _watch_joins() -> bool:
    global _watches_joins
    _watches_joins = _watches_joins or joining.watch(_joins)
    return _watches_joins


def _joins(frame: Optional[FrameType]) -> None:
    if _agent is not None:
        _agent.joining = stacks.entries(frame)
        _note()


def _note() -> None:
    if _agent is not None and _agent.pid == os.getpid():
        _rest()
        _agent.look()
        _resume()


def _at_exit() -> None:
    if _agent is not None:
        _rest()
        _agent.look(ended=True)


def _after_in_child() -> None:
    global _agent, _resting, _rests
    _resting, _rests = _thread.RLock(), 0
    if _agent is not None:
        exits.reaped.clear()
        _agent = Agent(_agent.folder, _agent.guardian, torch_names.default_group())
        with contextlib.suppress(OSError):
            output.separate(_agent.folder)
        _agent.look()  # it may end before the thread has its first look
        _agent.start()


def _alive(pid: int) -> bool:
    if pid <= 1:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
