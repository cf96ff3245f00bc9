"""The beacon of a process: a thread that looks at it five times a second and writes its record.

The thread is a raw one (`_thread`), so that `threading.enumerate()` and `active_count()` of the job
do not see it. It blocks every signal: a signal to the process is for the job's own threads. It stops
before every fork and starts again after it, in parent and child: a forked child never inherits half a
beacon, and Python sees no extra thread at the fork.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` would load `enum` into the job
import _thread
import atexit
import contextlib
import os
import time
from types import FrameType
from typing import TYPE_CHECKING, Any, Optional

from . import (
    call_log,
    exits,
    files,
    joining,
    nccl,
    output,
    signal_handlers,
    single_thread,
    ticks,
    torch_names,
)
from .crashes import CrashFile
from .process import Process
from .tracer import Tracer

if TYPE_CHECKING:
    from .record import Written

LOOKS = 2
"""Ticks from one look to the next; at those between, there is a sample only."""

LOOK_SHARE, LONGEST_PAUSE = 0.005, 0.6
"""Share of the time that looks may take: with hundreds of threads they come less often."""

AT_ITS_END = 0.00002
"""Seconds between two looks at whether the thread has gone."""

_kill = os.kill  # before it is replaced: a call of the beacon itself is not to be noted


class Beacon:
    """The beacon of one process. A forked child has a copy, which begins again there.

    Args:
        folder: the run directory.
        guardian: pid of the process whose end ends this one; 0 for none.
    """

    def __init__(self, folder: str, guardian: int = 0) -> None:
        self._folder = folder
        self._guardian = guardian
        self._crashes = CrashFile()
        self._watches_joins = self._watches_calls = False
        self._elsewhere = False
        self._begin()

    def _begin(self, inherited: Any = None) -> None:
        """Start from nothing, as also a forked child does."""
        self.pid = os.getpid()
        self.path = files.record_path(self._folder, self.pid)
        self._crash_path = files.stacks_path(self._folder, self.pid)
        self._samples_path = files.samples_path(self._folder, self.pid)
        self._process = Process(self._folder, inherited)
        self.calls = self._process.log
        self._last: Optional[Written] = None
        self._tracer = Tracer(self._guardian)
        self._wake = _thread.allocate_lock()
        self._running = _thread.allocate_lock()
        self._native_id = 0
        self._resting = _thread.RLock()
        self._rests = 0

    def start(self) -> None:
        """Start the thread, and take part in the forks and in the end of the process.

        Raises:
            OSError: the output of the process cannot be separated.
        """
        output.separate(self._folder)
        exits.watch(self._note)
        single_thread.watch(self.rest, self.resume)
        atexit.register(self._at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self.rest, after_in_parent=self.resume, after_in_child=self._after_in_child
            )
        self._start_thread()

    def rest(self) -> None:
        """Stop the thread until `resume`, as for a fork; other threads that call this wait until then.

        The calling thread may call it again, and then calls `resume` as often.
        """
        self._resting.acquire()
        self._rests += 1
        if self._rests == 1:
            self._stop_thread()

    def resume(self) -> None:
        """Start the thread again after `rest`."""
        self._rests -= 1
        if self._rests == 0:
            self._start_thread()
        self._resting.release()

    def look(self, beacon_thread: int = 0, ended: bool = False) -> None:
        """Write a record of this moment.

        Args:
            beacon_thread: the beacon's own thread, which is left out.
            ended: True in the last record of an orderly exit.
        """
        try:
            record: Written = self._process.look(beacon_thread, ended)
        except Exception as problem:
            if signal_handlers.raised(problem):
                raise
            record = {"failed": repr(problem)[:500]}
        try:
            if record == self._last:
                os.utime(self.path)
            else:
                files.write(self.path, record)
                self._last = record
        except OSError:
            files.give_up(self.path)
            self._last = None

    def _sample(self, tick: int, due: int) -> None:
        """Sample what the process does, and write the newest samples now and then.

        Args:
            tick: the newest one; due: the one at which it was to be done.
        """
        if self._process.sample(tick, due):
            with contextlib.suppress(OSError):
                files.write(self._samples_path, self._process.samples.newest())

    def _note(self) -> None:
        """Write a record at once, unless this is a child that was forked behind Python's back."""
        if self.pid == os.getpid() and not self._elsewhere:
            self.rest()
            self._watch_calls()  # before the process joins: from its first call on
            self.look()
            self.resume()

    def _watch_calls(self) -> None:
        self._watches_calls = self._watches_calls or call_log.watch(self)

    def _joins(self, frame: Optional[FrameType]) -> None:
        if self.pid == os.getpid():
            nccl.ask_for_dumps(self._folder)
        self._process.joins(frame)
        self._note()

    def _makes_group(self, wrapper: FrameType) -> None:
        self.calls.note_new_group(wrapper)

    def _at_exit(self) -> None:
        if not self._elsewhere:
            self.rest()
            self.look(ended=True)

    def _after_in_child(self) -> None:
        exits.forget()
        self._elsewhere = self._elsewhere or not os.getppid()
        self._begin(torch_names.default_group())
        if self._elsewhere:  # a namespace in which its pid is one of another process outside
            return
        with contextlib.suppress(OSError):
            output.separate(self._folder)
        self.look()  # it may end before the thread has its first look
        self._start_thread()

    def _start_thread(self) -> None:
        if self._elsewhere:
            return
        if not self._wake.locked():
            self._wake.acquire()
        self._running.acquire()
        unblocked = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        try:
            self._crashes.keep(self._crash_path)
            _thread.start_new_thread(self._run, ())
        except RuntimeError:
            self._running.release()
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, unblocked)

    def _stop_thread(self) -> None:
        """End the thread and wait for it, until the kernel, too, counts it no longer."""
        if self._wake.locked():
            self._wake.release()
        self._running.acquire()
        self._running.release()
        while os.path.exists(f"/proc/self/task/{self._native_id}"):
            time.sleep(AT_ITS_END)

    def _run(self) -> None:
        ident, self._native_id = _thread.get_ident(), _thread.get_native_id()
        try:
            due, look_at = ticks.first_after(time.monotonic()), 0.0
            while not self._woken(ticks.moment(due) - time.monotonic()):
                begun, used_before = time.monotonic(), time.thread_time()
                tick = ticks.met(due, begun)
                if self._process.joined():
                    self._sample(tick, due)
                    due = tick + 1
                else:
                    due = tick + LOOKS - tick % LOOKS
                if begun < look_at or tick % LOOKS:
                    continue
                if self._guardian and not _alive(self._guardian):
                    if files.is_released(self._folder):
                        return
                    _kill(self.pid, 9)
                self._tracer.admit()
                self._crashes.keep(self._crash_path)
                self.look(beacon_thread=ident)
                used = time.thread_time() - used_before
                pause = min(used / LOOK_SHARE, LONGEST_PAUSE)
                look_at = begun + pause
        finally:
            self._running.release()

    def _woken(self, pause: float) -> bool:
        """Wait so many seconds; True as soon as the thread is to end.

        A long pause may follow a look, but joining must be watched before all of torch is imported, and
        calls as soon as it is.
        """
        while True:
            self._watches_joins = self._watches_joins or joining.watch(self._joins, self._makes_group)
            self._watch_calls()
            step = pause if self._watches_joins and self._watches_calls else min(pause, 2 * ticks.TICK)
            if self._wake.acquire(timeout=max(0.0, step)):
                return True
            pause -= step
            if pause <= 0:
                return False


current: Optional[Beacon] = None
"""The beacon of this process, once it has started."""


def start() -> None:
    """Start the beacon of this process, when the environment names a run directory.

    In a pid namespace of its own (a container) the guardian cannot be seen, and the pid means another
    process to those outside: there is none.

    Raises:
        OSError: the output of the process cannot be separated.
    """
    global current
    folder = os.environ.get("STUCK_RANKS_RUN", "")
    guardian = int(os.environ.get("STUCK_RANKS_GUARDIAN", "0"))
    if current is None and os.path.isdir(folder) and (not guardian or _alive(guardian)):
        current = Beacon(folder, guardian)
        current.start()


def _alive(pid: int) -> bool:
    if pid <= 1:
        return False
    try:
        _kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
