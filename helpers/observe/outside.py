"""What a process meets outside: the holder of a lock, the owner of a port, its input. No I/O."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ..model.facts import Blocker, ProcessView
from ..model.port_refusal import refused_port
from ..model.waits import READER, OnInput, OnIO, OnLock, Wait
from . import locks
from .look import AnyQuestion, Ends, Held, Holder, Look, Movement, Owner, Peer
from .process_table import Motion, Row
from .rendezvous import own_port
from .source import relative
from .system_call import READS, WRITES


class Outside:
    """Completes what a process waits for.

    Args:
        cwd: working directory of the job.
        host: name of this machine.
        ask: gives the answer to a question, None before there is one.

    Attributes:
        strangers: port -> the process outside the job that owns it.
        input: what the job has as its standard input.
    """

    def __init__(self, cwd: str, host: str, ask: Callable[[AnyQuestion], Any]) -> None:
        self.strangers: dict[int, Blocker] = {}
        self.input = ""
        self._motions: dict[int, dict[int, Motion]] = {}
        self._cwd = cwd
        self._host = host
        self._ask = ask

    def take(self, look: Look) -> None:
        """Take in a look."""
        self.input = look.input
        for question, answer in look.answers:
            if isinstance(question, Owner) and answer is not None:
                port = question.port
                self.strangers.setdefault(port, Blocker(answer[0], f"owns port {port}", answer[1]))
            elif isinstance(question, Movement) and question.pid in self._motions:
                motions = self._motions[question.pid]
                for thread, runs, switches in answer or ():
                    motion = motions.setdefault(thread, Motion(look.time, switches))
                    motion.take(look.time, runs, switches, polls=0.0)
        for pid in self._motions:
            self._ask(Movement(pid, ()))

    def moved(self, waits: Sequence[Wait], rows: Collection[int]) -> float:
        """Monotonic time at which who outside the job could end what is waited for has last moved.

        That is the holder of a lock, and who has the other end of a pipe or a socket.

        It is looked at from the first time on that somebody waits for it.

        Args:
            rows: pids of the processes of the job.
        """
        blocking = [wait for wait in waits if wait.blocking]
        ends = {wait.holder for wait in blocking if isinstance(wait, OnLock)}
        ends |= {pid for wait in blocking if isinstance(wait, OnIO) for pid in wait.ends}
        pids = [pid for pid in ends if isinstance(pid, int) and pid not in rows]
        motions = [motion for pid in pids for motion in self._motions.setdefault(pid, {}).values()]
        return max((motion.moved for motion in motions), default=-math.inf)

    def look_for_strangers(self, view: ProcessView, rows: Mapping[int, Row]) -> None:
        """Ask who owns the port that a process could not have, or at which it waits for other nodes.

        Args:
            rows: the processes of the job, by pid.
        """
        if view.error is not None:
            self._look_for_stranger(refused_port(view.error), rows)
        if view.awaits_nodes:
            self._look_for_stranger(own_port(view.command, self._host), rows)

    def completed(self, wait: Wait, pid: int, rows: Collection[int] = ()) -> Wait | None:
        """One wait of process `pid`, completed; None for one that turns out to be none."""
        if isinstance(wait, OnInput) and wait.source and self.input and wait.source != self.input:
            wait = OnIO(  # a pipe of the job's own at its standard input
                op=wait.op,
                target=wait.source,
                thread=wait.thread,
                where=wait.where,
                blocking=wait.blocking,
                limited=wait.limited,
            )
        if isinstance(wait, OnIO):
            return self._with_ends(wait, pid)
        return self._with_holder(wait, pid, rows) if isinstance(wait, OnLock) else wait

    def _with_ends(self, wait: OnIO, pid: int) -> OnIO:
        """A wait with the processes at the other end, and of a connection with its address."""
        if not wait.target or wait.target == READER:
            return wait
        reads, writes = wait.op in READS, wait.op in WRITES
        ends = self._ask(Ends(pid, wait.target, reads)) if reads or writes else None
        peer = self._ask(Peer(pid, wait.target)) if wait.target.startswith("socket:") else None
        return replace(wait, ends=tuple(ends or ()), target=peer or wait.target)

    def _with_holder(self, wait: OnLock, pid: int, rows: Collection[int]) -> OnLock | None:
        """A wait with who holds the lock; None where a lock that is polled turns out to be free."""
        if wait.path is None and wait.op in locks.POLLED:
            holders: dict[str, int] = dict(self._ask(Held(pid)) or ())
            in_job = (path for path, holder in holders.items() if holder in rows)
            path = next(in_job, next(iter(holders), None))
            if path is None:
                return None
            return replace(wait, path=relative(path, self._cwd), holder=holders[path])
        if not wait.path:
            return wait
        holder: int | None = self._ask(Holder(wait.op, os.path.join(self._cwd, wait.path), pid))
        return replace(wait, holder="unknown" if holder is None else holder or "no process")

    def _look_for_stranger(self, port: int | None, rows: Mapping[int, Row]) -> None:
        if port is None or port in self.strangers:
            return
        if any(port == listening for row in rows.values() for _, listening in row.all_sockets):
            return
        self._ask(Owner(port))
