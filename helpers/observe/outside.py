"""What lies outside a process: who holds the lock or the port it wants, and what its input is."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from ..diagnose.events import refused
from ..launch.processes import port_owner
from ..model.facts import Blocker, ProcessView, Wait
from . import locks, ranks, sockets
from .process_table import Row

HOLDER_EVERY = 1.0
"""Seconds between two searches for the holder of a lock."""


class Outside:
    """Completes what a process waits for.

    Args:
        cwd: working directory of the job.

    Attributes:
        strangers: port -> the process outside the job that owns it.
        input: what the job has as its standard input.
    """

    def __init__(self, cwd: str) -> None:
        self.strangers: dict[int, Blocker] = {}
        self.input = ""
        self._cwd = cwd
        self._holders: dict[tuple[int, str], tuple[float, int | None]] = {}

    def look_at_input(self, pid: int) -> None:
        """Note what the job's first process reads from, once."""
        with suppress(OSError):
            self.input = self.input or os.readlink(f"/proc/{pid}/fd/0")

    def complete(self, view: ProcessView, rows: Mapping[int, Row]) -> ProcessView:
        """The view with all that only a look outside tells of its waits.

        Args:
            rows: the processes of the job, by pid.
        """
        if view.error is not None:
            self._look_for_stranger(refused(view.error), rows)
        if any(frame.function == "next_rendezvous" for frame in view.stack):
            self._look_for_stranger(ranks.own_rendezvous(view.command), rows)
        if not view.waits:
            return view
        return replace(view, waits=tuple(self.wait(wait, view.pid) for wait in view.waits))

    def wait(self, wait: Wait, pid: int) -> Wait:
        """One wait of process `pid`, completed."""
        if wait.kind == "input" and wait.key and self.input and wait.key != self.input:
            wait = replace(wait, kind="io")  # a pipe of the job's own at its standard input
        if wait.kind == "io":
            return sockets.named(wait, pid)
        if wait.kind == "lock" and wait.key:
            return replace(wait, holder=self._holder(wait.op, wait.key, pid))
        return wait

    def _holder(self, op: str, key: str, pid: int) -> int | None:
        now = time.monotonic()
        looked, holder = self._holders.get((pid, key), (0.0, None))
        if now - looked > HOLDER_EVERY:
            holder = locks.holder(op, os.path.join(self._cwd, key), pid)
            self._holders[pid, key] = (now, holder)
        return holder

    def _look_for_stranger(self, port: int | None, rows: Mapping[int, Row]) -> None:
        if port is None or port in self.strangers:
            return
        if any(port == own for row in rows.values() for _, own in row.all_sockets):
            return
        owner = port_owner(port, rows)
        if owner is not None:
            self.strangers[port] = Blocker(owner[0], f"owns port {port}", owner[1])
