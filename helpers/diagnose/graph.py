"""The wait-for graph of one snapshot: who is stuck for good, and on whom each rank waits. Pure.

A rank may go on when it is not blocked, or when something that one of its threads waits for may still
happen. The ranks for which that cannot be shown after following every wait are stuck: nobody inside the
job can wake them. A collective needs every member that has not arrived; a key or an open receive needs
anybody.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from helpers.diagnose.matching import arrived, contradicts, serves
from helpers.diagnose.standing import STILL, blocking, may_act, stands_still, waits_for_child
from helpers.model.facts import Collective, ProcessView, RankView, Snapshot, Wait

AGENTS = ("torchrun", "accelerate", "deepspeed")
"""Launchers that start all their ranks at once and then only watch them."""


@dataclass(frozen=True)
class Graph:
    """Waits between the ranks of one snapshot."""

    snapshot: Snapshot
    ranks: Mapping[int, RankView] = field(default_factory=dict)
    _known: dict[object, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Graph:
        """The graph of a snapshot; ranks of unknown number are left out."""
        return cls(snapshot, {view.rank: view for view in snapshot.ranks if view.rank is not None})

    @cached_property
    def stuck(self) -> frozenset[int]:
        """Ranks that are blocked and that nobody can wake any more."""
        alive = {r for r, v in self.ranks.items() if v.process is not None and v.process.alive}
        return frozenset(alive - self.free)

    @cached_property
    def free(self) -> frozenset[int]:
        """Ranks that may go on: not blocked, or waiting for something that may still happen."""
        free = {rank for rank, view in self.ranks.items() if not self._blocked(rank, view)}
        changed = True
        while changed:
            changed = False
            for rank, view in self.ranks.items():
                if rank in free or view.process is None or not view.process.alive:
                    continue
                if self._may_go_on(rank, view.process, free):
                    free.add(rank)
                    changed = True
        return frozenset(free)

    @cached_property
    def core(self) -> frozenset[int]:
        """The stuck ranks on which the other stuck ranks wait, and that wait for nobody else.

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
        """The ranks of which one, or all, could set `rank` free."""
        view = self.ranks[rank]
        if view.process is None or view.process.state == "stopped":
            return frozenset()
        if any(wait.kind == "store" for wait in blocking(view.process)):
            return frozenset(self.ranks) - {rank}
        return self.waited_for[rank]

    @cached_property
    def waited_for(self) -> dict[int, frozenset[int]]:
        """Rank -> the ranks that it waits for now (those that have not arrived)."""
        return {
            rank: frozenset(
                peer
                for wait in (blocking(view.process) if view.process else ())
                for peer in self.absent(rank, wait)
            )
            for rank, view in self.ranks.items()
        }

    def absent(self, rank: int, wait: Wait) -> tuple[int, ...]:
        """The ranks whose arrival `wait` of `rank` needs and that are not there."""
        if wait.kind == "collective":
            if wait.group is None:
                return ()
            return tuple(member for member in self._late(wait) if member != rank)
        if wait.kind == "p2p":
            peers = wait.peers or tuple(r for r in wait.group_ranks or self.ranks if r != rank)
            return tuple(peer for peer in peers if not serves(self._process(peer), rank, wait))
        if wait.kind == "rendezvous":
            return tuple(
                other
                for other, view in self.ranks.items()
                if other != rank and not self._at_rendezvous(view)
            )
        if wait.kind == "lock" and wait.holder:
            holder = self.rank_of(wait.holder)
            return () if holder is None or holder == rank else (holder,)
        return ()

    def _late(self, wait: Wait) -> tuple[int, ...]:
        """The members that have not arrived at a collective: the same for all who stand in it."""
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
            among: ranks of which two have to differ; None for any.

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
        """True when the rank is gone, was never started here, or stands still in a known wait."""
        if self._never_comes(view):
            return True
        if view.process is None or not stands_still(view.process):
            return False
        stopped = view.process.state == "stopped"
        return stopped or self._at_rest(view.process) or self._hopeless(rank, view.process)

    def _at_rest(self, process: ProcessView) -> bool:
        """True when no thread of the process does anything that could end a wait.

        A large message on its way takes processor time at both ends. A GPU's driver takes it just to
        wait, so there it says nothing.
        """
        quiet = process.idle >= STILL or self.snapshot.job.hardware == "cuda"
        return quiet and process.acting is None

    def _hopeless(self, rank: int, process: ProcessView) -> bool:
        """True for a rank in an operation that nothing can complete, whatever its other threads do."""
        for wait in blocking(process):
            if wait.kind not in ("collective", "p2p", "rendezvous"):
                continue
            others = [self.ranks[peer] for peer in self.absent(rank, wait) if peer in self.ranks]
            if any(self._never_comes(view) or contradicts(view.process, wait) for view in others):
                return True
        return False

    def _never_comes(self, view: RankView) -> bool:
        """True for a rank that has ended, or that nobody will start."""
        if view.process is None:
            gone = view.state == "exited"
            return gone or (view.state == "missing" and not self._may_start_more())
        return not view.process.alive

    def _may_go_on(self, rank: int, process: ProcessView, free: set[int]) -> bool:
        """True when something may happen that ends a wait, or that gives back memory it wants."""
        if process.frozen:
            return bool(free)
        if process.state == "stopped":
            return self._may_be_continued(free)
        return any(self._can_end(rank, w, free) for w in blocking(process))

    def _may_be_continued(self, free: set[int]) -> bool:
        """True while a process of the job on this machine may still let a stopped one go on.

        A rank that waits for others does not, whatever its other threads do.
        """
        there = [process for rank in free if (process := self.ranks[rank].process) is not None]
        acts = any(may_act(process) or not stands_still(process) for process in there)
        return acts or self._others_act()

    def _may_start_more(self) -> bool:
        """True while some process outside the ranks could still start one."""
        if self.snapshot.job.launcher in AGENTS:
            return False
        launchers = self.snapshot.launchers
        return any(process.alive and not waits_for_child(process) for process in launchers)

    def _can_end(self, rank: int, wait: Wait, free: set[int]) -> bool:
        if wait.limited:
            return True
        if wait.kind in ("collective", "rendezvous"):
            if wait.kind == "rendezvous" and self._split_rendezvous():
                return False
            return all(peer in free for peer in self.absent(rank, wait))
        if wait.kind == "p2p":
            absent = self.absent(rank, wait)
            if wait.peers:
                return all(peer in free for peer in absent)
            anybody = [peer for peer in wait.group_ranks or self.ranks if peer != rank]
            return len(absent) < len(anybody) or any(peer in free for peer in anybody)
        if wait.kind == "store":
            return self._others_act() or any(peer in free for peer in self.ranks if peer != rank)
        if wait.kind == "lock":
            return self._lock_can_end(rank, wait, free)
        if wait.kind == "process":
            return self._child_can_end(self.ranks[rank], free)
        return not (wait.kind == "input" and self.snapshot.stdin == "silent")

    def _others_act(self) -> bool:
        """True while a process that is no rank may still set a key, or let a stopped one go on."""
        children = [child.process for view in self.ranks.values() for child in view.children]
        return self._may_start_more() or any(
            child.kind == "process" and child.where is not None and may_act(child) for child in children
        )

    def _lock_can_end(self, rank: int, wait: Wait, free: set[int]) -> bool:
        if wait.holder is None:
            return True
        if wait.holder == 0:
            return False
        holder = self.rank_of(wait.holder)
        return holder is None or holder in free or holder == rank

    def _child_can_end(self, view: RankView, free: set[int]) -> bool:
        """A rank that waits for its children goes on when one of them does, or has ended."""
        children = [child for child in view.children if child.process.kind != "helper"]
        if not children:
            return True
        return any(
            not child.process.alive
            or (
                self._may_be_continued(free)
                if child.process.state == "stopped"
                else not self._child_stuck(child.process, free)
            )
            for child in children
        )

    def _child_stuck(self, process: ProcessView, free: set[int]) -> bool:
        if not stands_still(process):
            return False
        return any(
            wait.kind in ("rendezvous", "collective") and not any(peer in free for peer in self.ranks)
            for wait in blocking(process)
        )

    def _at_rendezvous(self, view: RankView) -> bool:
        return view.joined or (
            view.process is not None and view.process.alive and view.state == "rendezvous"
        )

    def _split_rendezvous(self) -> bool:
        """True when ranks wait for each other at different addresses."""
        return len(self.addresses()) > 1

    def addresses(self) -> dict[str, list[int]]:
        """Store address -> ranks that wait at it, of those now in the rendezvous."""
        found: dict[str, list[int]] = {}
        for rank, view in self.ranks.items():
            if view.state == "rendezvous" and view.process is not None and view.master:
                found.setdefault(view.master, []).append(rank)
        return found
