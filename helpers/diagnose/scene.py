"""What the causes look at: one snapshot, its wait-for graph and its events; and what they answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..model.facts import Blocker, Cause, Frame, ProcessView, RankView, Snapshot, Wait
from .events import Event, events
from .graph import Graph

FROZEN = "stopped by the kernel until memory is free"
"""What is said of a process that wants more memory than the job may have."""


@dataclass(frozen=True)
class Finding:
    """What one cause makes of the facts.

    Attributes:
        detail: the cause in this job's own terms, one clause.
        summary: one sentence that a tired person understands.
        hang: True when nothing has failed: the job stands still.
    """

    cause: Cause
    detail: str
    summary: str
    culprits: tuple[int, ...] = ()
    where: Frame | None = None
    evidence: tuple[str, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    hang: bool = False


@dataclass(frozen=True)
class Facts:
    """One moment of a job, prepared for the causes.

    Attributes:
        patience: seconds after which what has neither moved nor used CPU is assumed never to do so;
            infinite: nothing is assumed, and what is found is proved.
    """

    snapshot: Snapshot
    patience: float = math.inf

    @cached_property
    def graph(self) -> Graph:
        """The wait-for graph of the snapshot."""
        return Graph.of(self.snapshot, self.patience)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Failing ends, the most telling first."""
        return events(self.snapshot)

    @property
    def first(self) -> Event | None:
        """The event that the others follow from, if any has happened."""
        return self.events[0] if self.events else None

    @cached_property
    def stuck(self) -> frozenset[int]:
        """Ranks that nobody can wake any more."""
        return self.graph.stuck

    @property
    def alive(self) -> dict[int, RankView]:
        """Ranks whose process runs."""
        return {r: v for r, v in self.graph.ranks.items() if v.process and v.process.alive}

    @property
    def gone(self) -> dict[int, RankView]:
        """Ranks whose process has ended."""
        return {r: v for r, v in self.graph.ranks.items() if v.process and not v.process.alive}

    def processes(self, ranks: Sequence[int]) -> list[ProcessView]:
        """The processes of `ranks`, of those that have one."""
        views = [self.graph.ranks[rank] for rank in ranks]
        return [view.process for view in views if view.process is not None]

    def waits(self, rank: int) -> tuple[Wait, ...]:
        """What a rank is blocked in."""
        return self.graph.waits(rank)

    def where(self, ranks: Sequence[int]) -> Frame | None:
        """The line of the first of `ranks` that has one."""
        for rank in ranks:
            view = self.graph.ranks.get(rank)
            if view is not None and view.process is not None and view.process.where is not None:
                return view.process.where
        return None


def odd_ones(places: dict[int, object]) -> tuple[int, ...]:
    """The ranks outside the strict majority of `places`; all of them when there is none."""
    groups: dict[object, list[int]] = {}
    for rank, place in places.items():
        groups.setdefault(place, []).append(rank)
    largest = max(groups.values(), key=len, default=[])
    if len(groups) > 1 and 2 * len(largest) > len(places):
        return tuple(sorted(rank for rank in places if rank not in largest))
    return tuple(sorted(places))


def spoken(ranks: Sequence[int]) -> str:
    """`rank 1`, `ranks 0 and 2`, `ranks 0, 1 and 3`; long lists in runs: `ranks 0-5 and 7`."""
    parts = runs(sorted(ranks))
    if not parts:
        return "no rank"
    word = "rank" if len(ranks) == 1 else "ranks"
    if len(parts) == 1:
        return f"{word} {parts[0]}"
    return f"{word} {', '.join(parts[:-1])} and {parts[-1]}"


def place(frame: Frame | None) -> str:
    """`train.py:41`, or a word for an unknown place."""
    return f"{frame.file}:{frame.line}" if frame else "an unknown line"


def last_seen(frame: Frame | None) -> str:
    """`; it was last seen at train.py:41`, or nothing."""
    return f"; it was last seen at {place(frame)}" if frame else ""


def operation(wait: Wait) -> str:
    """`all_reduce #7 of the default group`, `recv from rank 1`, `the key 'x' of the store`."""
    if wait.kind == "collective":
        number = f" #{wait.seq}" if wait.seq is not None else ""
        group = f" of {group_name(wait.group)}" if wait.group else ""
        return f"{wait.op}{number}{group}"
    if wait.kind == "p2p":
        peers = f" {'to' if 'send' in wait.op else 'from'} {spoken(wait.peers)}" if wait.peers else ""
        return f"{wait.op}{peers}"
    if wait.kind == "store":
        return f"the store key {wait.key!r}" if wait.key else "a key of the store"
    if wait.kind == "rendezvous":
        return "the rendezvous (init_process_group)"
    if wait.kind == "lock":
        return f"the lock {wait.key}" if wait.key else "a lock"
    if wait.kind == "process":
        return "a DataLoader worker" if wait.op == "DataLoader" else "a child process"
    if wait.kind == "input":
        return "input from stdin"
    return f"{wait.op} on {wait.key}" if wait.key else wait.op


def doing(process: ProcessView | None) -> str:
    """What a process does, in a few words: `asleep`, `stopped by a signal`, `in recv from rank 0`."""
    if process is None:
        return "never started"
    if not process.alive:
        return "ended"
    if process.frozen:
        return FROZEN
    if process.state == "stopped":
        return "stopped by a signal"
    if process.gil_held:
        return "inside a C call that holds the interpreter lock"
    if process.asleep:
        return "asleep"
    if process.state == "importing":
        return "importing"
    standing = process.blocking
    if standing:
        inside = standing[0].kind in ("collective", "p2p", "rendezvous", "io")
        return f"{'in' if inside else 'waiting for'} {operation(standing[0])}"
    return "working" if process.cpu > 5 else "idle"


def group_name(group: str | None) -> str:
    """`the default group`, `group tp`."""
    return "the default group" if group in (None, "default") else f"group {group}"


def runs(ranks: Sequence[int]) -> list[str]:
    """Sorted numbers in words, three or more in a row as one: `0-5`, `7`."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    found = []
    for run in parts:
        found += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(rank) for rank in run]
    return found
