"""What ended in a job, in order, and which of it follows from something earlier."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Set

import msgspec
from msgspec.structs import replace

from ..model.facts import ErrorView, ProcessView, RankView, Snapshot
from ..model.frames import Frame, innermost_user
from ..model.waits import ANY_CHILD, OnChild
from .messages import FOLLOWS, NOT_PASSED, OTHER_END_GONE, RELAYED, TIMEOUT, lost_worker
from .needs import AGENTS

SIGTERM = 15
FROM_OUTSIDE = (9, SIGTERM)
"""SIGKILL and SIGTERM: somebody else has sent them."""


class Event(msgspec.Struct, frozen=True):
    """One process of the job that ended, or failed.

    Attributes:
        rank: its rank, or the rank that started it; None for a launcher.
        own: True when the process is the rank itself, or the wrapper around it.
        consequence: True when it says itself that it follows from the end of another process.
        started_at: the user's line, in the process that started this one, that did so.
        host: the machine of a process whose rank is not known, where that is.
    """

    time: float
    rank: int | None
    process: ProcessView
    own: bool
    error: ErrorView | None = None
    consequence: bool = False
    started_at: Frame | None = None
    host: str = ""

    @property
    def ranks(self) -> tuple[int, ...]:
        """Its rank; nothing where that is not known."""
        return () if self.rank is None else (self.rank,)

    @property
    def who(self) -> str:
        """`rank 1`, `a process on node7`, `the command`."""
        if self.rank is not None:
            return f"rank {self.rank}"
        on = f" on {self.host}" if self.host else ""
        return f"a process{on}" if self.own else "the command"

    @property
    def by_signal(self) -> int | None:
        """The signal that ended the process, unless an exception did."""
        return self.process.signal if self.error is None else None

    @property
    def where(self) -> Frame | None:
        """The innermost user line: of the exception, else where the process was last seen.

        What a library runs in a spawned or forked process may have no such line there: then it is the
        line that had the process started.
        """
        if self.process.kind == "launcher" and self.process.wraps is None:
            return None
        if self.error is not None and self.error.stack:
            return innermost_user(self.error.stack) or self.started_at
        return self.process.where

    @property
    def text(self) -> str:
        """The event in a few words."""
        if self.error is not None:
            return self.error.text
        if self.process.signal is not None:
            return f"ended by signal {self.process.signal}"
        return f"ended with exit code {self.process.exit_code}"

    @property
    def timeout(self) -> bool:
        """True for an exception that says a wait took too long."""
        return self.error is not None and bool(TIMEOUT.search(self.error.message))


def events(snapshot: Snapshot) -> tuple[Event, ...]:
    """Every failing end in the job, the most telling first.

    First causes stand before what follows from them, exceptions before signals, and each of these in
    the order of time. A child of a rank counts only when its rank, or the job, has failed too: a job
    may well start a helper that fails and go on. Its twin counts as the rank itself does. A script
    that starts the ranks later may fail and go on, too: of the processes outside the ranks, those that
    have no rank below them count when the job has ended.
    """
    starters = {} if snapshot.job.launcher in AGENTS else {p.pid: p for p in snapshot.launchers}
    ends = [event for view in snapshot.ranks for event in _of_rank(snapshot, view, starters)]
    ends += _of_launchers(snapshot, {event.rank for event in ends})
    return tuple(sorted(ends, key=_weight))


def _of_rank(snapshot: Snapshot, view: RankView, starters: Mapping[int, ProcessView]) -> Iterator[Event]:
    """The failing ends of a rank and of its children."""
    process = view.process
    if process is None:
        return
    rank_event = _event(process, view.rank, own=True)
    if rank_event is not None:
        starter = starters.get(process.parent) if process.parent is not None else None
        started_at = last_line(starter) if starter is not None else None
        yield replace(rank_event, host=view.host if view.rank is None else "", started_at=started_at)
    hurt = rank_event is not None or snapshot.job.exit_code not in (0, None) or _needs_ended(view)
    same = twins(view)
    for child in view.children:
        counts = hurt or child.process.pid in same
        event = _event(child.process, view.rank, own=False) if counts else None
        if event is not None:
            yield event


def _of_launchers(snapshot: Snapshot, failed: Set[int | None]) -> Iterator[Event]:
    """The failing ends of processes outside the ranks: a wrapper's follows from its rank's."""
    if snapshot.job.exit_code == 0:
        return
    above = _above_ranks(snapshot)
    for launcher in snapshot.launchers:
        event = _event(launcher, launcher.wraps, own=launcher.wraps is not None)
        if event is None or not (launcher.pid in above or snapshot.job.ended is not None):
            continue
        follows = event.consequence or (launcher.wraps is not None and launcher.wraps in failed)
        yield replace(event, consequence=follows)


def left_to_starter(snapshot: Snapshot, event: Event) -> bool:
    """True while it is for the process that has started a rank to say whether its end is a failure.

    A script may end the ranks that it has started when it has what it needs from them, by SIGTERM or
    SIGKILL (`Process.terminate`, `Process.kill`), and go on; nothing shows who has sent a signal. The
    launchers of `AGENTS` never do so, and the kernel sends SIGKILL for memory.
    """
    if snapshot.job.launcher in AGENTS or snapshot.memory_kills:
        return False
    if event.by_signal not in FROM_OUTSIDE or not event.own or snapshot.job.exit_code not in (0, None):
        return False
    ranks = (view.process for view in snapshot.ranks if view.process is not None)
    starter = next((p for p in (*snapshot.launchers, *ranks) if p.pid == event.process.parent), None)
    if starter is None or starter.error is not None:
        return False
    lives = starter.ended is None or starter.ended >= event.time
    return lives and not starter.signal and not starter.exit_code


def twins(view: RankView) -> frozenset[int]:
    """Pids of processes that have the number of this rank and were not started below it."""
    if view.process is None:
        return frozenset()
    below = {view.process.pid, *(child.process.pid for child in view.children)}
    return frozenset(
        child.process.pid
        for child in view.children
        if child.process.kind == "process"
        and child.process.parent is not None
        and child.process.parent not in below
    )


def last_line(process: ProcessView) -> Frame | None:
    """The user's line at which a process failed, else the one at which it was last seen."""
    return (innermost_user(process.error.stack) if process.error else None) or process.where


def line_of_call(process: ProcessView) -> Frame | None:
    """The user's line of the call that has failed, or in which it was last seen; None if in none."""
    in_call = process.error is not None or process.ended_in_call or bool(process.waits)
    return last_line(process) if in_call else None


def _event(process: ProcessView, rank: int | None, *, own: bool) -> Event | None:
    error = process.error
    if error is not None:
        relayed = error.type in RELAYED or bool(FOLLOWS.search(error.message))
        follows = relayed or lost_worker(error) or _other_end_gone(error)
        return Event(error.time, rank, process, own, error, follows)
    if process.ended is None or process.kind == "helper":
        return None
    if process.interpreter_finished and process.signal == SIGTERM:
        return None
    if process.signal is not None:
        return Event(process.ended, rank, process, own, consequence=process.signal == SIGTERM)
    if process.exit_code:
        return Event(process.ended, rank, process, own, consequence=rank is None and not own)
    return None


def _other_end_gone(error: ErrorView) -> bool:
    """True when a connection of `multiprocessing` broke: the process at its other end is gone.

    A batch of a DataLoader comes over such a connection, and reading it fails in one of these ways
    before the loader itself notices that its worker has died.
    """
    inside = itertools.takewhile(lambda frame: not frame.user, error.stack)
    return error.type in OTHER_END_GONE and any(
        frame.file.endswith("multiprocessing/connection.py") for frame in inside
    )


def _above_ranks(snapshot: Snapshot) -> set[int]:
    """Pids of the processes from which a rank descends."""
    parents = {process.pid: process.parent for process in snapshot.launchers}
    above: set[int] = set()
    for view in snapshot.ranks:
        pid = view.process.parent if view.process else None
        while pid is not None and pid not in above:
            above.add(pid)
            pid = parents.get(pid)
    return above


def _weight(event: Event) -> tuple[bool, bool, bool, bool, float]:
    """Of consequences, that which says of which rank counts for most."""
    error = event.error
    names = error is not None and NOT_PASSED.search(error.message) is not None
    nobody = event.rank is None and not event.own
    return (event.consequence, nobody, error is None, not names, event.time)


def _needs_ended(view: RankView) -> bool:
    """True when the rank waits for a child that may have ended: no wait for a living one will do."""
    alive = any(child.process.alive for child in view.children)
    waits = view.process.waits if view.process else ()
    return any(isinstance(wait, OnChild) and not (wait.op == ANY_CHILD and alive) for wait in waits)
