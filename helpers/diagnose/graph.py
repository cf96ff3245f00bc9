"""The wait-for graph of one snapshot: who is stuck for good, and which ranks each one waits for.

A rank may go on when it is not blocked, or when something that one of its threads waits for may still
happen. The ranks for which that cannot be shown after following every wait are stuck: nobody inside the
job can wake them. A collective needs every member that has not arrived; a key or an open receive needs
anybody.

So much is proved. A suspicion needs one assumption more: a rank that has neither moved nor used CPU for
`patience` seconds never will, unless other ranks end what it waits for.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ..model.facts import STILL, Collective, ProcessView, RankView, Snapshot, Wait
from .matching import arrived, contradicts, serves

AGENTS = ("torchrun", "accelerate", "deepspeed")
"""Launchers that start all their ranks at once and then only watch them."""


@dataclass(frozen=True)
class Need:
    """What sets a blocked rank free: that all of some ranks may go on, or any one of them.

    To need all of no ranks is to go on without them; any one of no ranks never comes.
    """

    ranks: Collection[int] = ()
    any_one: bool = False

    def is_met(self, free: set[int]) -> bool:
        """True when the ranks that may go on suffice."""
        return (any if self.any_one else all)(rank in free for rank in self.ranks)


@dataclass(frozen=True)
class Graph:
    """Waits between the ranks of one snapshot.

    Attributes:
        patience: seconds after which a rank that does not move is given up; infinite: none is.
    """

    snapshot: Snapshot
    ranks: Mapping[int, RankView] = field(default_factory=dict)
    patience: float = math.inf
    _known: dict[object, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, snapshot: Snapshot, patience: float = math.inf) -> Graph:
        """The graph of a snapshot; ranks of unknown number are left out."""
        ranks = {view.rank: view for view in snapshot.ranks if view.rank is not None}
        return cls(snapshot, ranks, patience)

    @cached_property
    def alive(self) -> dict[int, ProcessView]:
        """Rank -> its process, where that runs."""
        processes = {rank: view.process for rank, view in self.ranks.items()}
        return {rank: process for rank, process in processes.items() if process and process.alive}

    @cached_property
    def stuck(self) -> frozenset[int]:
        """Ranks that are blocked and that nothing can wake any more."""
        return frozenset(self.alive.keys() - self.free)

    @cached_property
    def free(self) -> frozenset[int]:
        """Ranks that may go on: not blocked, or waiting for something that may still happen."""
        free = {rank for rank, view in self.ranks.items() if not self._blocked(rank, view)}
        blocked = {rank: tuple(self._needs(rank)) for rank in self.alive.keys() - free}
        while woken := {r for r, needs in blocked.items() if any(n.is_met(free) for n in needs)} - free:
            free |= woken
        return frozenset(free)

    @cached_property
    def given_up(self) -> frozenset[int]:
        """Ranks that are assumed to do nothing by themselves any more.

        While other ranks move, one that no rank waits for may rest as long as it likes, and one that was
        never started may still come.
        """
        unmoved = frozenset(rank for rank in self.alive if self._unmoved(rank))
        if unmoved and unmoved == self.alive.keys():
            return unmoved | {rank for rank, view in self.ranks.items() if view.state == "missing"}
        return unmoved & {peer for peers in self.waited_for.values() for peer in peers}

    @cached_property
    def core(self) -> frozenset[int]:
        """The stuck ranks on which the other stuck ranks wait, and that wait for no other.

        A rank that waits for the core goes on as soon as the core does: it is in no way odd.
        """
        reached = self._reached()
        return frozenset(
            rank
            for rank, bits in reached.items()
            if all(reached[other] >> rank & 1 for other in reached if bits >> other & 1)
        )

    def _reached(self) -> dict[int, int]:
        """Stuck rank -> the stuck ranks that waits lead to from there, as bits by their number."""
        reached = {
            rank: sum(1 << other for other in self._held_by(rank) & self.stuck) for rank in self.stuck
        }
        for middle in reached:
            for rank, bits in reached.items():
                if bits >> middle & 1:
                    reached[rank] = bits | reached[middle]
        return reached

    def _held_by(self, rank: int) -> frozenset[int]:
        """The ranks that could end what `rank` waits for, one of them alone or all together."""
        return frozenset(peer for wait in self.waits(rank) for peer in self._needed(rank, wait).ranks)

    @cached_property
    def waited_for(self) -> dict[int, frozenset[int]]:
        """Rank -> the ranks that it waits for now (those that have not arrived)."""
        return {
            rank: frozenset(peer for wait in self.waits(rank) for peer in self.absent(rank, wait))
            for rank in self.ranks
        }

    def waits(self, rank: int) -> tuple[Wait, ...]:
        """What a rank is blocked in; nothing while it is stopped, since that is what holds it then."""
        process = self.ranks[rank].process
        return () if process is None or process.state == "stopped" else process.blocking

    def absent(self, rank: int, wait: Wait) -> tuple[int, ...]:
        """The ranks whose arrival `wait` of `rank` needs and that are not there."""
        if wait.kind == "collective":
            if wait.group is None:
                return ()
            return tuple(member for member in self._late(wait) if member != rank)
        if wait.kind == "p2p":
            peers = wait.peers or tuple(r for r in wait.group_ranks or self.ranks if r != rank)
            away = tuple(peer for peer in peers if not serves(self._process(peer), rank, wait))
            return away if wait.peers or away == peers else ()
        if wait.kind == "rendezvous":
            return tuple(r for r in self.ranks if r != rank and not self._meets(rank, r))
        if wait.kind == "lock" and wait.holder:
            holder = self.rank_of(wait.holder)
            return () if holder is None or holder == rank else (holder,)
        return ()

    def _late(self, wait: Wait) -> tuple[int, ...]:
        """The members that have not arrived at a collective: the same for all who are in it."""
        place = (wait.op, wait.group, wait.group_ranks, wait.seq, wait.sizes, wait.root, wait.number)
        if place not in self._known:
            members = wait.group_ranks or tuple(self.ranks)
            self._known[place] = tuple(m for m in members if not arrived(self._process(m), wait))
        return self._known[place]

    def _process(self, rank: int) -> ProcessView | None:
        view = self.ranks.get(rank)
        return None if view is None else view.process

    def rank_of(self, pid: int) -> int | None:
        """The rank that process `pid` is, or belongs to."""
        for rank, view in self.ranks.items():
            pids = [child.process.pid for child in view.children]
            if view.process is not None and pid in (view.process.pid, *pids):
                return rank
        return None

    def divergence(
        self, among: Collection[int] | None = None
    ) -> tuple[str, int, dict[int, Collective]] | None:
        """The first place at which members of a group issued different operations.

        Args:
            among: two of these ranks have to differ; None for any two.

        Returns (group, sequence number, rank -> what it issued there, other ranks too), or None.
        """
        asked = self.ranks if among is None else among
        by_place: dict[tuple[str, int], dict[int, Collective]] = {}
        for rank, view in self.ranks.items():
            for entry in view.process.collectives if view.process else ():
                by_place.setdefault((entry.group, entry.seq), {})[rank] = entry
        for (group, seq), issued in sorted(by_place.items(), key=lambda item: item[0][1]):
            pending = any(not entry.done for entry in issued.values())
            if pending and len({entry.op for rank, entry in issued.items() if rank in asked}) > 1:
                return group, seq, issued
        return None

    def _blocked(self, rank: int, view: RankView) -> bool:
        """True when the rank is gone, was never started here, is given up, or rests in a known wait."""
        if self._never_comes(view) or rank in self.given_up:
            return True
        if view.process is None or not view.process.blocked:
            return False
        stopped = view.process.state == "stopped"
        return stopped or self._at_rest(view.process) or self._hopeless(rank)

    def _unmoved(self, rank: int) -> bool:
        """True for a rank that has not moved for `patience` seconds, and has used no CPU.

        Nor has any child that it waits for.
        """
        process = self.alive[rank]
        children = [child.process for child in self.ranks[rank].children if child.process.alive]
        needed = [process, *(children if process.waits_for_child else [])]
        return process.still >= self.patience and all(one.idle >= self.patience for one in needed)

    def _at_rest(self, process: ProcessView) -> bool:
        """True when no thread of the process does anything that could end a wait.

        A large message on its way takes processor time at both ends. A GPU's driver takes it just to
        wait, so there it says nothing.
        """
        quiet = process.idle >= STILL or self.snapshot.job.hardware == "cuda"
        return quiet and process.acting is None

    def _hopeless(self, rank: int) -> bool:
        """True for a rank in an operation that nothing can complete, whatever its other threads do."""
        for wait in self.waits(rank):
            if wait.kind not in ("collective", "p2p", "rendezvous"):
                continue
            others = [self.ranks[peer] for peer in self.absent(rank, wait) if peer in self.ranks]
            if any(self._never_comes(view) or contradicts(view.process, wait) for view in others):
                return True
        return False

    def _never_comes(self, view: RankView) -> bool:
        """True for a rank that has ended, or that will never be started."""
        if view.process is None:
            gone = view.state == "exited"
            return gone or (view.state == "missing" and not self._may_start_more())
        return not view.process.alive

    def _may_start_more(self) -> bool:
        """True while some process outside the ranks could still start one."""
        if self.snapshot.job.launcher in AGENTS:
            return False
        launchers = self.snapshot.launchers
        return any(process.alive and not process.waits_for_child for process in launchers)

    def _needs(self, rank: int) -> Iterator[Need]:
        """What could set a blocked rank free; each of these would do.

        One that is given up has only the ranks that it waits for.
        """
        process, waits = self.alive[rank], self.waits(rank)
        yield from (need for wait in waits if (need := self._needed(rank, wait)).ranks)
        if rank in self.given_up:
            return
        if process.frozen:
            yield self._anybody  # whoever goes on may give memory back
        elif process.state == "stopped":
            yield from self._needs_of_stopped
        for wait in waits:
            if self._may_end_by_itself(rank, wait):
                yield Need()
            elif wait.kind == "process":
                yield from self._needs_of_children(self.ranks[rank])

    def _needed(self, rank: int, wait: Wait) -> Need:
        """The ranks that could end a wait by going on: any rank may set a key."""
        if wait.kind == "store":
            return self._anybody
        return Need(self.absent(rank, wait), any_one=wait.kind == "p2p" and not wait.peers)

    @property
    def _anybody(self) -> Need:
        return Need(self.ranks, any_one=True)

    def _may_end_by_itself(self, rank: int, wait: Wait) -> bool:
        """True when a wait may end although no rank that it needs goes on."""
        if wait.limited:
            return True
        if wait.kind == "store":
            return self._others_act()
        if wait.kind == "input":
            return self.snapshot.stdin != "silent"
        if wait.kind == "process" or (wait.kind == "lock" and wait.holder == 0):
            return False
        return not self.absent(rank, wait)

    def _needs_of_children(self, view: RankView) -> Iterator[Need]:
        """A rank that waits for its children goes on when one of them does, or has ended."""
        children = [child.process for child in view.children if child.process.kind != "helper"]
        if not children:
            yield Need()
        for process in children:
            if process.state == "stopped":
                yield from self._needs_of_stopped
            elif process.blocked and any(
                wait.kind in ("rendezvous", "collective") for wait in process.blocking
            ):
                yield self._anybody
            else:
                yield Need()

    @cached_property
    def _needs_of_stopped(self) -> tuple[Need, ...]:
        """What lets a stopped process go on: another process of the job on this machine that still acts.

        A rank that waits for others does not, whatever its other threads do.
        """
        act = [rank for rank, process in self.alive.items() if process.may_act or not process.blocked]
        return (Need(act, any_one=True), *([Need()] if self._others_act() else []))

    def _others_act(self) -> bool:
        """True while a process that is not a rank may still set a key, or let a stopped one go on."""
        children = [child.process for view in self.ranks.values() for child in view.children]
        return self._may_start_more() or any(
            child.kind == "process" and child.where is not None and child.may_act for child in children
        )

    def _meets(self, rank: int, other: int) -> bool:
        """True when `other` has joined, or is in the rendezvous at the address of `rank`."""
        here, there = self.ranks[rank], self.ranks[other]
        if there.joined:
            return True
        inside = other in self.alive and there.state == "rendezvous"
        return inside and (None in (here.master, there.master) or here.master == there.master)

    def addresses(self) -> dict[str, list[int]]:
        """Store address -> ranks that wait at it, of those now in the rendezvous."""
        found: dict[str, list[int]] = {}
        for rank, view in self.ranks.items():
            if view.state == "rendezvous" and view.process is not None and view.master:
                found.setdefault(view.master, []).append(rank)
        return found
