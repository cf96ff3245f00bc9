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
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import msgspec

from ..model.facts import STILL, UNTOLD, ProcessView, RankView, Snapshot
from ..model.waits import DATA_LOADER, READER, InCollective, OnChild, OnDevice, OnIO, Wait
from .loops import loops
from .needs import NOBODY, Need, Needs

SOON = 300.0
"""Seconds within which a wait that ends by itself is one that goes on."""


class Graph(msgspec.Struct, frozen=True, dict=True):
    """Waits between the ranks of one snapshot, followed to their ends.

    Attributes:
        patience: seconds after which a rank that does not move is given up; infinite: none is.
    """

    snapshot: Snapshot
    ranks: Mapping[int, RankView] = msgspec.field(default_factory=dict)
    patience: float = math.inf

    @classmethod
    def of(cls, snapshot: Snapshot, patience: float = math.inf) -> Graph:
        """The graph of a snapshot; ranks of unknown number are left out."""
        ranks = {view.rank: view for view in snapshot.ranks if view.rank is not None}
        return cls(snapshot, ranks, patience)

    @cached_property
    def needs(self) -> Needs:
        """What could end each wait."""
        return Needs(self.snapshot, self.ranks)

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
        near = ((rank, view) for rank, view in self.ranks.items() if view.state != "unseen")
        moving = (rank for rank, view in near if not self._blocked(rank, view))
        return self.freed_by(self.unseen.union(moving))

    @cached_property
    def unseen(self) -> frozenset[int]:
        """The ranks that are out of sight: of those seen on one machine, thousands may be elsewhere."""
        return frozenset(rank for rank, view in self.ranks.items() if view.state == "unseen")

    def freed_by(self, ranks: Iterable[int]) -> frozenset[int]:
        """The ranks that go on once these do: one that goes on arrives wherever it is waited for."""
        free = {*ranks}
        reached: list[int] = []
        missing = {
            need: int(free.isdisjoint(need.ranks)) if need.any_one else len(need.ranks - free)
            for need in self._frees
        }
        met = [need for need, number in missing.items() if number == 0]
        while met or reached:
            woken = {rank for need in met for rank in self._frees[need]} - free
            free |= woken
            reached += woken
            met = []
            for need in self._part_of.get(reached.pop(), ()) if reached else ():
                missing[need] -= 1
                met += [need] if missing[need] == 0 else []
        return frozenset(free)

    @cached_property
    def given_up(self) -> frozenset[int]:
        """Ranks that are assumed to do nothing by themselves any more.

        While other ranks move, one that no rank waits for may rest as long as it likes, and one that was
        never started may still come. Ranks may always wait for what is outside of the job, if all do.
        """
        if self.patience == math.inf:
            return NOBODY
        unmoved = frozenset(rank for rank in self.alive if self._unmoved(rank))
        if unmoved and unmoved == self.alive.keys():
            if all(rank not in self.awaited and self._waits_outside(rank) for rank in unmoved):
                return NOBODY
            return unmoved | {rank for rank, view in self.ranks.items() if view.state == "missing"}
        return unmoved & self.awaited

    @cached_property
    def core(self) -> frozenset[int]:
        """The stuck ranks on which the other stuck ranks wait, and that wait for no other.

        A rank that waits for the core goes on as soon as the core does: it is in no way odd.
        """
        by_rank = {rank: self._held_by(rank) for rank in self.stuck}
        leads: dict[int | Need, Iterable[int | Need]] = dict(by_rank.items())
        leads |= {need: need.ranks & self.stuck for needs in by_rank.values() for need in needs}
        ends = (loop for loop in loops(leads) if all(loop.issuperset(leads[node]) for node in loop))
        return self.stuck & frozenset(node for loop in ends for node in loop)

    def _held_by(self, rank: int) -> list[Need]:
        """What stuck ranks could end what `rank` waits for, one of them alone or all together."""
        needs = [self.needs.of_ranks(rank, wait) for wait in self.waits(rank)]
        return [need for need in needs if not need.ranks.isdisjoint(self.stuck)]

    @cached_property
    def waited_for(self) -> dict[int, frozenset[int]]:
        """Rank -> the ranks that it waits for now (those that have not arrived)."""
        awaited = dict.fromkeys(self.ranks, NOBODY)
        for rank, waits in self._waits.items():
            first, *more = [self.needs.absent(rank, wait) for wait in waits]
            awaited[rank] = first.union(*more) if more else first
        return awaited

    @cached_property
    def awaited(self) -> frozenset[int]:
        """The ranks that another one waits for."""
        return self.awaited_by(self.ranks)

    def awaited_by(self, ranks: Iterable[int]) -> frozenset[int]:
        """The ranks that one of `ranks` waits for."""
        return NOBODY.union(*{self.waited_for[rank] for rank in ranks})

    def waited_for_among(self, ranks: Iterable[int]) -> dict[int, frozenset[int]]:
        """Rank that waits for some of `ranks` -> those of them for which it waits."""
        targets = frozenset(ranks)
        among = {peers: peers & targets for peers in {*self.waited_for.values()}}
        return {rank: met for rank, peers in self.waited_for.items() if (met := among[peers])}

    def needing(self, ranks: Iterable[int]) -> list[int]:
        """The other stuck ranks that wait for what one of `ranks` alone, or with others, could do."""
        targets = frozenset(ranks)

        def waits_for(rank: int) -> bool:
            needs = (self.needs.of_ranks(rank, wait) for wait in self.waits(rank))
            return any(not need.ranks.isdisjoint(targets) for need in needs)

        return sorted(filter(waits_for, self.stuck - targets))

    def may_go_on_alone(self, rank: int) -> bool:
        """True for a rank that nothing seen keeps where it is: it may go on though no other one does."""
        if not self._blocked(rank, self.ranks[rank]):
            return True
        return rank in self.alive and Need() in self._needs_of(rank)

    def waits(self, rank: int) -> tuple[Wait, ...]:
        """What a rank is blocked in; nothing while it is stopped, since that is what holds it then."""
        return self._waits.get(rank, ())

    @cached_property
    def _waits(self) -> dict[int, tuple[Wait, ...]]:
        processes = ((rank, view.process) for rank, view in self.ranks.items())
        blocking = {r: p.blocking for r, p in processes if p is not None and p.state != "stopped"}
        return {rank: waits for rank, waits in blocking.items() if waits}

    def _blocked(self, rank: int, view: RankView) -> bool:
        """True when the rank is gone, was never started here, is given up, or rests in a known wait."""
        if self.needs.never_comes(view) or rank in self.given_up:
            return True
        if view.process is None or not view.process.blocked or not self._holds(view.process):
            return False
        return (
            view.process.stopped_for_memory
            or self._at_rest(view.process)
            or any(self.needs.hopeless(rank, wait) for wait in self.waits(rank))
        )

    def _unmoved(self, rank: int) -> bool:
        """True for a rank that has been still for `patience` seconds, and what it waits for in turn."""
        if not self._holds(self.alive[rank]) or any(
            self._is_up_to_device(rank, wait) for wait in self.waits(rank)
        ):
            return False
        return all(self._is_still(process) for process in self.needs.in_turn(rank))

    def _holds(self, process: ProcessView) -> bool:
        """True where the place of a process was read after the newest end of a rank.

        One that has ended may have done before what the process waited for when it was last read.
        """
        return process.read_at >= self._newest_end

    @cached_property
    def _newest_end(self) -> float:
        ends = (view.process.ended for view in self.ranks.values() if view.process is not None)
        return max((end for end in ends if end is not None), default=-math.inf)

    def _is_up_to_device(self, rank: int, wait: Wait) -> bool:
        """True where all ranks have come to a collective, and a device has yet to carry it out.

        What a dump shows is not: it was made since that had taken too long.
        """
        dumped = self.alive[rank].still >= UNTOLD
        on_device = isinstance(wait, InCollective) and wait.on_device
        return on_device and not dumped and not self.needs.absent(rank, wait)

    def _is_still(self, process: ProcessView) -> bool:
        """True for a process that has not moved for `patience` seconds, and is not about to."""
        on_device = any(isinstance(wait, OnDevice) for wait in process.blocking)
        goes_on = on_device or ends_soon(process, self.snapshot.time) or _waits_for_reader(process)
        halted = process.traced or process.frozen or process.starved
        return not (goes_on or halted) and min(process.unmoved, process.idle) >= self.patience

    def _waits_outside(self, rank: int) -> bool:
        """True for a rank that waits for something outside of the job, or for a program that does."""
        process = self.ranks[rank].process
        waits = [*self.waits(rank), *(process.through if process is not None else ())]
        if any(isinstance(wait, OnChild) and wait.op != DATA_LOADER for wait in waits):
            waits += [wait for process in self.needs.in_turn(rank)[1:] for wait in process.blocking]
        return any(self.needs.is_outside(wait) for wait in waits)

    def _at_rest(self, process: ProcessView) -> bool:
        """True when no thread of the process does anything that could end a wait.

        A large message on its way takes processor time at both ends.
        """
        return process.idle >= STILL and process.acting_thread is None

    @cached_property
    def _frees(self) -> dict[Need, list[int]]:
        """Need -> the blocked ranks that it would set free; of several, one will do."""
        needs: dict[Need, list[int]] = {}
        for rank in self.alive:
            if self._blocked(rank, self.ranks[rank]):
                for need in self._needs_of(rank):
                    needs.setdefault(need, []).append(rank)
        return needs

    @cached_property
    def _part_of(self) -> dict[int, list[Need]]:
        """Blocked rank -> the needs that it is named in."""
        needs: dict[int, list[Need]] = {}
        blocked = {rank for ranks in self._frees.values() for rank in ranks}
        for need in self._frees:
            for rank in need.ranks & blocked:
                needs.setdefault(rank, []).append(need)
        return needs

    def _needs_of(self, rank: int) -> Iterator[Need]:
        """What could set a blocked rank free.

        One that is given up has only the ranks that it waits for.
        """
        process, waits = self.alive[rank], self.waits(rank)
        yield from (need for wait in waits if (need := self.needs.of_ranks(rank, wait)).ranks)
        if rank in self.given_up:
            return
        if process.stopped_for_memory:
            yield self.needs.anybody  # whoever goes on may give memory back
        for wait in waits:
            yield from self.needs.otherwise(rank, wait)


def ends_soon(process: ProcessView, now: float) -> bool:
    """True for a process whose wait ends by itself before long, counted from `now`."""
    return process.ends is not None and process.ends - now <= SOON


def _waits_for_reader(process: ProcessView) -> bool:
    """True while nobody reads what a process prints: that is the user's to end, at any time."""
    return any(isinstance(wait, OnIO) and wait.target == READER for wait in process.blocking)
