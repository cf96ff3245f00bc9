"""What could end a wait: which ranks would have to go on, and what else might do it.

Each question is answered for each kind of wait in one place; whoever adds a kind answers both here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..model.facts import STILL, ProcessView, RankView, Snapshot
from ..model.waits import (
    AtRendezvous,
    ForRanks,
    InCollective,
    InP2P,
    InRPC,
    InStore,
    JoinsRPC,
    OnChild,
    OnInput,
    OnIO,
    OnLock,
    OnThread,
    Wait,
)
from .matching import arrived, contradicts, disputed_groups, serves

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


BY_ITSELF = (Need(),)
"""A wait may end whatever the ranks do."""

NEVER: tuple[Need, ...] = ()
"""Nothing but the ranks that it needs can end a wait."""


@dataclass(frozen=True)
class Needs:
    """The needs of the ranks of one snapshot.

    Attributes:
        ranks: those of known number, by it.
    """

    snapshot: Snapshot
    ranks: Mapping[int, RankView]
    _late: dict[object, tuple[int, ...]] = field(default_factory=dict, compare=False, repr=False)

    def absent(self, rank: int, wait: Wait) -> tuple[int, ...]:
        """The ranks whose arrival `wait` of `rank` needs and that are not there."""
        match wait:
            case InCollective(group=None):
                return ()
            case InCollective():
                return tuple(member for member in self._late_at(wait) if member != rank)
            case InP2P():
                peers = wait.peers or tuple(r for r in wait.members or self.ranks if r != rank)
                away = tuple(peer for peer in peers if not serves(self._process(peer), rank, wait))
                return away if wait.peers or away == peers else ()
            case JoinsRPC():
                return tuple(r for r in self.ranks if r != rank and not self.ranks[r].reached_rpc)
            case AtRendezvous():
                return tuple(r for r in self.ranks if r != rank and not self._meets(rank, r))
            case InRPC(meets_all=True):
                return tuple(r for r in self.ranks if r != rank and not self._leaves_rpc(r))
            case InRPC():
                return wait.peers
            case OnLock(holder=int(pid)):
                holder = self.rank_of(pid)
                return () if holder is None or holder == rank else (holder,)
            case InStore() | OnLock() | OnThread() | OnChild() | OnInput() | OnIO():
                return ()

    def of_ranks(self, rank: int, wait: Wait) -> Need:
        """The ranks that could end a wait by going on: any rank may set a key."""
        if isinstance(wait, InStore):
            return self.anybody
        return Need(self.absent(rank, wait), any_one=isinstance(wait, InP2P) and not wait.peers)

    def otherwise(self, rank: int, wait: Wait) -> Sequence[Need]:
        """What could end a wait although no rank that it needs goes on."""
        if wait.limited:
            return BY_ITSELF
        if self._is_disputed(rank, wait):
            return NEVER
        match wait:
            case InCollective() | InP2P() | AtRendezvous() | InRPC(meets_all=True):
                return NEVER if self.absent(rank, wait) else BY_ITSELF
            case InRPC() | OnThread(circular=False):
                return BY_ITSELF  # threads that serve calls do so whatever the others of theirs wait for
            case OnThread():
                return NEVER
            case InStore():
                return BY_ITSELF if self._others_act() else NEVER
            case OnLock():
                by_nobody_else = isinstance(wait.holder, str) and wait.holder != "unknown"
                return NEVER if by_nobody_else or self.absent(rank, wait) else BY_ITSELF
            case OnChild():
                return self._of_children(self.ranks[rank])
            case OnInput():
                return NEVER if self.snapshot.stdin == "silent" else BY_ITSELF
            case OnIO():
                return [need for pid in wait.ends for need in self._of_process(pid, ())] or BY_ITSELF

    def hopeless(self, rank: int, wait: Wait) -> bool:
        """True for a wait that no rank can end any more, whatever the threads of this one do."""
        if not isinstance(wait, ForRanks):
            return False
        if self._is_disputed(rank, wait):
            return True
        others = [self.ranks[peer] for peer in self.absent(rank, wait) if peer in self.ranks]
        return any(self.never_comes(view) or contradicts(view.process, wait) for view in others)

    @cached_property
    def disputed(self) -> dict[str, dict[int, tuple[int, ...]]]:
        """The groups that have other members on other ranks, as `disputed_groups` gives them."""
        return disputed_groups(self.ranks)

    def _is_disputed(self, rank: int, wait: Wait) -> bool:
        """True for a call in a group, or for the creation of one, that has other members elsewhere."""
        process = self._process(rank)
        if not self.disputed or not isinstance(wait, InCollective) or process is None:
            return False
        if wait.group_number is not None:
            return str(wait.group_number - 1) in self.disputed
        return any(group.id in self.disputed for group in process.groups if group.name == wait.group)

    @cached_property
    def of_stopped(self) -> tuple[Need, ...]:
        """What lets a stopped process go on: another process of the job on this machine that still acts.

        A rank that waits for others does not, whatever its other threads do.
        """
        processes = {rank: view.process for rank, view in self.ranks.items()}
        act = [r for r, p in processes.items() if p and p.alive and (p.may_act or not p.blocked)]
        return (Need(act, any_one=True), *(BY_ITSELF if self._others_act() else NEVER))

    @property
    def anybody(self) -> Need:
        """Any rank that goes on."""
        return Need(self.ranks, any_one=True)

    def never_comes(self, view: RankView) -> bool:
        """True for a rank that has ended, or that will never be started.

        What it did at last may reach another rank a moment after its end.
        """
        if view.process is None:
            gone = view.state == "exited"
            return gone or (view.state == "missing" and not self._may_start_more())
        ended = view.process.ended
        return ended is not None and self.snapshot.time - ended >= STILL

    def rank_of(self, pid: int) -> int | None:
        """The rank that process `pid` is, or belongs to."""
        for rank, view in self.ranks.items():
            pids = [child.process.pid for child in view.children]
            if view.process is not None and pid in (view.process.pid, *pids):
                return rank
        return None

    def _late_at(self, wait: InCollective) -> tuple[int, ...]:
        """The members that have not arrived at a collective: the same for all who are in it."""
        place = (wait.op, wait.group, wait.members, wait.seq, wait.sizes, wait.root, wait.group_number)
        if place not in self._late:
            members = wait.members or tuple(self.ranks)
            self._late[place] = tuple(m for m in members if not arrived(self._process(m), wait))
        return self._late[place]

    def _process(self, rank: int) -> ProcessView | None:
        view = self.ranks.get(rank)
        return None if view is None else view.process

    def _meets(self, rank: int, other: int) -> bool:
        """True when `other` has joined, or is in the rendezvous at the address of `rank`."""
        here, there = self.ranks[rank], self.ranks[other]
        if there.joined:
            return True
        alive = there.process is not None and there.process.alive
        same = None in (here.master, there.master) or here.master == there.master
        return alive and there.state == "rendezvous" and same

    def _leaves_rpc(self, other: int) -> bool:
        """True when `other` is in `rpc.shutdown`."""
        process = self._process(other)
        waits = process.waits if process is not None and process.alive else ()
        return any(isinstance(wait, InRPC) and wait.meets_all for wait in waits)

    def _of_children(self, view: RankView) -> list[Need]:
        """A rank that waits for its children goes on when one of them does, or has ended."""
        children = [child.process for child in view.children if child.process.kind != "helper"]
        return [need for child in children for need in self._of_child(child)] if children else [Need()]

    def _of_child(self, process: ProcessView, passed: Collection[int] = ()) -> Sequence[Need]:
        """What lets a child go on.

        Args:
            passed: pids of processes that wait for it, which can do nothing for it then.
        """
        if process.state == "stopped" and not process.traced:
            return self.of_stopped
        if not process.blocked or process.acting_thread is not None:
            return BY_ITSELF
        if any(isinstance(wait, InCollective | AtRendezvous) for wait in process.blocking):
            return (self.anybody,)
        ends = [wait.ends for wait in process.blocking if isinstance(wait, OnIO)]
        if len(ends) < len(process.blocking) or not all(ends):
            return BY_ITSELF
        left = {pid for held in ends for pid in held} - {process.pid, *passed}
        return [need for pid in left for need in self._of_process(pid, {process.pid, *passed})]

    def _of_process(self, pid: int, passed: Collection[int]) -> Sequence[Need]:
        """What lets a process go on: it may be a rank, a child of one, or none of the job's."""
        children = [child.process for view in self.ranks.values() for child in view.children]
        child = next((process for process in children if process.pid == pid), None)
        if child is not None:
            return self._of_child(child, passed) if child.alive else NEVER
        rank = self.rank_of(pid)
        return BY_ITSELF if rank is None else (Need((rank,)),)

    def _others_act(self) -> bool:
        """True while a process that is not a rank may still set a key, or let a stopped one go on."""
        children = [child.process for view in self.ranks.values() for child in view.children]
        return self._may_start_more() or any(
            child.kind == "process" and child.where is not None and child.may_act for child in children
        )

    def _may_start_more(self) -> bool:
        """True while some process outside the ranks could still start one."""
        if self.snapshot.job.launcher in AGENTS:
            return False
        launchers = self.snapshot.launchers
        return any(process.alive and not process.waits_for_child for process in launchers)
