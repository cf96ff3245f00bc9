"""The process table of a job: every process ever seen, with what the system knows of it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from ..launch.processes import BOOKKEEPING

BUSY = 0.05
"""Share of one core over a sample above which a process counts as working."""

PORTS_EVERY, PORTS_SHARE = 0.6, 0.05
"""Seconds between two looks at a process's sockets, and the share of the time that they may take: with
thousands of sockets one look takes 0.1 s."""


@dataclass(eq=False)
class Row:
    """One process of the job.

    Attributes:
        started: monotonic time at which it was started.
        process: it itself; None while nobody but its beacon, or the guardian, has told of it.
        status: wait status once the process has ended and somebody knows it, else None.
        ended: monotonic time at which it was seen to have ended.
        found: monotonic time at which it was first seen.
        active: monotonic time at which it last used a noticeable amount of CPU.
        waits_for_child: True while its main thread sleeps in a wait for a child.
        environment: what its program was given at its start; None where we may not look.
        sockets: (address, port) of its listening TCP sockets; all_sockets: those it ever had.
    """

    pid: int
    parent: int
    started: float
    command: tuple[str, ...]
    seen: float
    process: psutil.Process | None = None
    stopped: bool = False
    waits_for_child: bool = False
    ended: float | None = None
    status: int | None = None
    active: float = 0.0
    cpu_seconds: float = 0.0
    cpu: float = 0.0
    memory: int = 0
    found: float = 0.0
    sockets: tuple[tuple[str, int], ...] = ()
    all_sockets: set[tuple[str, int]] = field(default_factory=set)
    sockets_next: float = 0.0
    environment: Mapping[str, str] | None = None

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

    def precedes(self, other: Row) -> bool:
        """True when this process had ended before the other one was there."""
        return self.ended is not None and self.ended <= other.found

    @property
    def is_python(self) -> bool:
        """True when the command line starts a Python interpreter."""
        return bool(self.command) and Path(self.command[0]).name.startswith("python")

    @property
    def is_helper(self) -> bool:
        """True for a bookkeeping process of `multiprocessing`."""
        return any(name in part for part in self.command for name in BOOKKEEPING)


class Table:
    """Rows by pid, updated by `look`."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}

    def look(self, alive: Sequence[psutil.Process], known: Mapping[int, int]) -> None:
        """Take one sample.

        Args:
            alive: the processes of the job that exist now.
            known: pid -> wait status of processes whose end somebody has seen.
        """
        now = time.monotonic()
        present = set()
        for process in alive:
            with contextlib.suppress(psutil.Error):
                if self._sample(process, now):
                    present.add(process.pid)
        for row in self.rows.values():
            if row.status is None and row.pid in known:
                row.status = known[row.pid]
            if row.ended is None and row.pid not in present:
                row.ended = now
                if row.status is None:
                    row.status = _zombie_status(row.pid)

    def ensure(self, pid: int, parent: int, command: tuple[str, ...], started: float) -> None:
        """Make sure that a process has a row, however soon it has ended."""
        if pid not in self.rows:
            now = time.monotonic()
            self.rows[pid] = Row(pid, parent, started, command, seen=now, active=now, found=now)

    def ancestors(self, pid: int) -> list[Row]:
        """Rows above `pid`, nearest first."""
        found: list[Row] = []
        row = self.rows.get(pid)
        while row is not None and len(found) < 64:
            row = self.rows.get(row.parent)
            if row is not None:
                found.append(row)
        return found

    def _sample(self, process: psutil.Process, now: float) -> bool:
        """Update one row; False when the process is a zombie, that is, has ended."""
        with process.oneshot():
            row = self.rows.get(process.pid)
            if row is None or row.process != process:
                row = self._new(process, now)
            state = process.status()
            if state == psutil.STATUS_ZOMBIE:
                if row.status is None:
                    row.status = _zombie_status(process.pid)
                return False
            row.stopped = state in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
            row.waits_for_child = _kernel_function(process.pid) in ("do_wait", "wait_consider_task")
            times = process.cpu_times()
            used = times.user + times.system
            elapsed = now - row.seen
            if elapsed > 0.05:
                row.cpu = 100.0 * (used - row.cpu_seconds) / elapsed
                if row.cpu > 100.0 * BUSY:
                    row.active = now
                row.cpu_seconds, row.seen = used, now
            row.memory = process.memory_info().rss
        command = tuple(process.cmdline())
        if command and command != row.command:
            row.command = command
            row.environment = _environment(process)
        if now >= row.sockets_next:
            begun = time.monotonic()
            sockets = process.net_connections(kind="tcp")
            now_open = {(c.laddr.ip, c.laddr.port) for c in sockets if c.status == psutil.CONN_LISTEN}
            row.sockets = tuple(sorted(now_open))
            row.all_sockets |= now_open
            row.sockets_next = now + max(PORTS_EVERY, (time.monotonic() - begun) / PORTS_SHARE)
        return True

    def _new(self, process: psutil.Process, now: float) -> Row:
        row = Row(
            pid=process.pid,
            parent=process.ppid(),
            started=now - (time.time() - process.create_time()),
            command=tuple(process.cmdline()),
            seen=now,
            process=process,
            active=now,
            found=now,
            environment=_environment(process),
        )
        self.rows[process.pid] = row
        return row


def _environment(process: psutil.Process) -> Mapping[str, str] | None:
    with contextlib.suppress(psutil.Error, OSError):
        found: Mapping[str, str] = process.environ()
        return found
    return None


def _zombie_status(pid: int) -> int | None:
    """Wait status of a process that nobody has waited for yet, from its stat line (Linux)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[49]) if len(fields) > 49 and fields[0] == "Z" else None


def _kernel_function(pid: int) -> str:
    """The kernel function in which the main thread of `pid` sleeps (Linux), else an empty string."""
    try:
        return Path(f"/proc/{pid}/wchan").read_text()
    except OSError:
        return ""


def _port(address: Any) -> int:
    return int(address.port) if address else 0
