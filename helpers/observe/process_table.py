"""The process table of a job: every process ever seen, with what the system knows of it. No I/O."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ..beacon.record import NativeCall
from ..launch.processes import BOOKKEEPING, is_python
from ..model.frames import Frame
from .look import Look, Program, Usage

WORK, FORGIVEN = 0.05, 0.01
"""Seconds of processor time that make what uses them count as at work, and how much of that is forgiven
each second: what wakes up from time to time to look around uses less than 1 % of a core. The kernel
counts in steps of 0.01 s."""

SPINNING = ("TP_SHM_reactor", "TP_IBV_reactor", "pt_tcpstore", "NCCL ")
"""Threads whose work is none of their process's, by how their names begin. Those of
`torch.distributed.rpc` look for messages all the time (TensorPipe by shared memory and InfiniBand:
tensorpipe/common/busy_polling_loop.h); that of the store answers whoever asks for a key again and again
(c10d/TCPStoreLibUvBackend.cpp); those of NCCL look for what is to be sent until a collective is done
(src/proxy.cc)."""


class Work:
    """The processor time that a process or a thread uses.

    Args:
        now: monotonic time from which on it is looked at.
        used: seconds of processor time used by then.
        active: monotonic time at which it may have been at work last.

    Attributes:
        active: monotonic time at which it was last at work.
    """

    def __init__(self, now: float, used: float, active: float) -> None:
        self.active = active
        self._now, self._used = now, used
        self._due = 0.0

    def take(self, now: float, used: float) -> None:
        """Take in what it has used by now."""
        self._due = max(0.0, self._due - FORGIVEN * (now - self._now)) + used - self._used
        self._now, self._used = now, used
        if self._due >= WORK:
            self.active, self._due = now, 0.0


SEEN_FOR = 1.2
"""Seconds after a look for which what it has shown counts: no more than two looks take at most. What a
thread does later, before the next look, is not known to be nothing."""

WAKES_SAVED, MOST_WAKES = 8.0, 1e6
"""Wake-ups of a place's own polling that may come ahead of their time: on a busy machine they come in a
row; and more than any place has in a second."""


class Motion:
    """Whether a thread does anything, by how often it is scheduled.

    Args:
        now: monotonic time of the first look at it.
        switches: how often it had been scheduled by then.

    Attributes:
        moved: monotonic time from which on it has done nothing but what its place does in any case.
    """

    def __init__(self, now: float, switches: int) -> None:
        self.moved = now
        self._now, self._switches = now, switches
        self._explained = 0.0

    def take(self, now: float, runs: bool, switches: int, polls: float) -> None:
        """Take in a look.

        Args:
            runs: whether it runs, or would if it got a processor, or if nothing kept it from that.
            polls: wake-ups a second that are its place's own.
        """
        elapsed, woken = now - self._now, switches - self._switches
        self._now, self._switches = now, switches
        self._explained += min(polls, MOST_WAKES) * elapsed - woken
        if (runs and not polls) or (woken and self._explained < -WAKES_SAVED * (polls > 0)):
            self.moved, self._explained = now, 0.0
        else:
            self._explained = min(self._explained, 0.0)
            self.moved += max(0.0, elapsed - SEEN_FOR)


@dataclass(eq=False)
class Row:
    """One process of the job.

    Attributes:
        started: monotonic time at which it was started.
        look_time: monotonic time at which `cpu_seconds`, which it had used by then, were read.
        number: distinguishes it from earlier processes with the same pid; None while only its beacon,
            or the guardian, has reported it.
        status: wait status once the process has ended and it is known, else None.
        ended: monotonic time at which it was seen to have ended.
        first_look: monotonic time of the look that first showed it.
        work: what it uses of the processor; threads: the same of its threads, by the kernel's ids, from
            when on that was asked for; motions: what they do, likewise.
        users_threads: those beside the main one that have run the user's code: the kernel's id -> name
            and last line.
        native: the system call that blocks its main thread, of a program that is no Python.
        roused: monotonic time of the newest look at which its main thread did not stand.
        frozen: True while a control group keeps it from running.
        stalled: True while it waits for memory that its control group has not.
        traced: True while a debugger stops it.
        starved: True while the thread of its beacon could run and gets no processor.
        waits_for_child: True while its main thread sleeps in a wait for a child.
        forked: True while it runs the program of its parent.
        detached: True where it is in another session than the command.
        exe: path of what it runs; empty when unknown.
        environment: what its program was given at its start; None where we may not look.
        sockets: (address, port) of its listening TCP sockets; all_sockets: those it ever had.
        unanswered: `address:port` of the other ends that do not answer.
    """

    pid: int
    parent: int
    started: float
    command: tuple[str, ...]
    look_time: float
    number: int | None = None
    stopped: bool = False
    traced: bool = False
    starved: bool = False
    frozen: bool = False
    stalled: bool = False
    waits_for_child: bool = False
    ended: float | None = None
    status: int | None = None
    threads: dict[int, Work] = field(default_factory=dict)
    motions: dict[int, Motion] = field(default_factory=dict)
    users_threads: dict[int, tuple[str, Frame]] = field(default_factory=dict)
    native: NativeCall | None = None
    roused: float = -math.inf
    cpu_seconds: float = 0.0
    cpu: float = 0.0
    memory: int = 0
    private: int | None = None
    first_look: float = 0.0
    sockets: tuple[tuple[str, int], ...] = ()
    all_sockets: set[tuple[str, int]] = field(default_factory=set)
    unanswered: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    forked: bool = False
    detached: bool = False
    exe: str = ""
    work: Work = field(init=False)

    def __post_init__(self) -> None:
        self.work = Work(self.look_time, 0.0, self.look_time)

    @property
    def exit_code(self) -> int | None:
        """Exit code of a process that ended by itself."""
        if self.status is None or not os.WIFEXITED(self.status):
            return None
        return os.WEXITSTATUS(self.status)

    @property
    def signal(self) -> int | None:
        """Number of the signal that ended the process."""
        if self.status is None or not os.WIFSIGNALED(self.status):
            return None
        return os.WTERMSIG(self.status)

    def idle(self, now: float, bystanders: Collection[int] = ()) -> float:
        """Seconds since it was last at work; the threads that are bystanders do not count."""
        counted = [work.active for thread, work in self.threads.items() if thread not in bystanders]
        if not self.threads:
            return max(0.0, now - self.work.active)
        if not counted:
            return max(0.0, now - self.first_look)
        return max(0.0, now - min(self.work.active, max(counted)))

    def take_threads(self, now: float, used: Sequence[tuple[int, float, str]]) -> None:
        """Take in the seconds of processor time that each thread has used by now.

        What those that were there before the first look did then is not known. Threads that are known
        to use the processor just to wait are left out.
        """
        previous = self.threads
        self.threads = {}
        for thread, seconds, name in used:
            if name.startswith(SPINNING):
                continue
            new = Work(now, 0.0, self.started) if previous else Work(now, seconds, now)
            self.threads[thread] = work = previous.get(thread, new)
            work.take(now, seconds)

    def take_motions(
        self, now: float, movements: Sequence[tuple[int, bool, int]], polls: Mapping[int, float]
    ) -> None:
        """Take in whether each thread runs, and how often it has been scheduled.

        What a thread does that could not be looked at, since it or its process is about to end, is not
        known to be nothing.

        Args:
            polls: thread that was to be looked at -> wake-ups a second that are its place's own.
        """
        previous, self.motions = self.motions, {thread: Motion(now, 0) for thread in polls}
        for thread, runs, switches in movements:
            self.motions[thread] = motion = previous.get(thread) or Motion(now, switches)
            motion.take(now, runs or self.frozen, switches, polls.get(thread, 0.0))

    def moved(self, thread: int | None) -> float:
        """Monotonic time from which on a thread has not moved, as far as its wake-ups tell."""
        motion = self.motions.get(self.pid if thread is None else thread)
        return self.roused if motion is None else max(self.roused, motion.moved)

    def precedes(self, row: Row) -> bool:
        """True when this process had ended before the other one was first seen."""
        return self.ended is not None and self.ended <= row.first_look

    @property
    def is_python(self) -> bool:
        """True when the command line starts a Python interpreter."""
        return is_python(self.command)

    @property
    def is_helper(self) -> bool:
        """True for a bookkeeping process of `multiprocessing`; what a fork server forks is none."""
        return not self.forked and any(name in part for part in self.command for name in BOOKKEEPING)


class Table:
    """Rows by pid, brought up to date by each look."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}

    def take(self, look: Look, statuses: Mapping[int, int]) -> None:
        """Take in a look.

        Args:
            statuses: pid -> wait status of processes whose end was seen.
        """
        for program in look.programs:
            self._program(program, look.time)
        for program in look.programs:
            parent = self.rows.get(program.parent)
            self.rows[program.pid].forked = parent is not None and parent.command == program.command
        for usage in look.alive:
            self._usage(self.rows[usage.pid], usage, look.time)
        present = {usage.pid for usage in look.alive}
        for row in self.rows.values():
            if row.status is None and row.pid in statuses:
                row.status = statuses[row.pid]
            if row.ended is None and row.pid not in present:
                row.ended = look.time

    def ensure(
        self, pid: int, parent: int, command: tuple[str, ...], started: float, now: float
    ) -> None:
        """Make sure that a process has a row, however soon it has ended, and a command in it.

        While a process is replaced by another program, and while it ends, the kernel shows none.
        """
        row = self.rows.get(pid)
        if row is None:
            self.rows[pid] = Row(pid, parent, started, command, look_time=now, first_look=now)
        elif not row.command:
            row.command = command

    def ancestors(self, pid: int) -> list[Row]:
        """Rows above `pid`, nearest first."""
        above: list[Row] = []
        row = self.rows.get(pid)
        while row is not None and len(above) < 64:
            row = self.rows.get(row.parent)
            if row is not None:
                above.append(row)
        return above

    def _program(self, program: Program, now: float) -> None:
        row = self.rows.get(program.pid)
        if row is None or row.number != program.number:
            row = self.rows[program.pid] = Row(
                pid=program.pid,
                parent=program.parent,
                started=program.started,
                command=program.command,
                look_time=now,
                number=program.number,
                first_look=now,
            )
        row.command, row.environment = program.command, program.environment
        row.detached, row.exe = program.apart, program.exe

    def _usage(self, row: Row, usage: Usage, now: float) -> None:
        if row.stopped and not usage.stopped:  # it could do nothing until now
            for work in (row.work, *row.threads.values()):
                work.active = now
        row.stopped, row.traced, row.stalled = usage.stopped, usage.traced, usage.stalled
        row.frozen = usage.frozen
        row.waits_for_child = usage.waits_for_child
        row.memory, row.private = usage.memory, usage.private
        row.work.take(now, usage.cpu)
        elapsed = now - row.look_time
        if elapsed > 0.05:
            row.cpu = 100.0 * (usage.cpu - row.cpu_seconds) / elapsed
            row.cpu_seconds, row.look_time = usage.cpu, now
        if usage.sockets is not None:
            row.sockets = usage.sockets
            row.all_sockets |= set(usage.sockets)
            row.unanswered = usage.unanswered
