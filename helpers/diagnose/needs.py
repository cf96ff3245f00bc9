"""What could end a wait: which ranks would have to go on, and what else might do it.

Each question is answered for each kind of wait in one place; whoever adds a kind answers both here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from ..model.facts import STILL, ProcessView, RankView, Snapshot
from ..model.waits import (
    DATA_LOADER,
    SIGNAL,
    AtRendezvous,
    ForRanks,
    InCollective,
    InP2P,
    InRPC,
    InStore,
    JoinsRPC,
    OnChild,
    OnCondition,
    OnDevice,
    OnInput,
    OnIO,
    OnLock,
    OnThread,
    Wait,
)
from .matching import arrived, contradicts, disputed_groups, likeness, serves

AGENTS = ("torchrun", "accelerate", "deepspeed")
"""Launchers that start all their ranks at once and then only watch them."""


NOBODY = frozenset[int]()


class Need(NamedTuple):
    """What sets a blocked rank free: that all of some ranks may go on, or any one of them.

    To need all of no ranks is to go on without them; any one of no ranks never comes.
    """

    ranks: frozenset[int] = NOBODY
    any_one: bool = False


BY_ITSELF = (Need(),)
"""A wait may end whatever the ranks do."""

NEVER: tuple[Need, ...] = ()
"""Nothing but the ranks that it needs can end a wait."""


class Needs(msgspec.Struct, frozen=True, dict=True):
    """The needs of the ranks of one snapshot.

    Ranks in one and the same call share what is found, so that thousands of them cost little more than
    one: sets are handed out as they are, but for the rank that asks.

    Attributes:
        ranks: those of known number, by it.
    """

    snapshot: Snapshot
    ranks: Mapping[int, RankView]
    _absent: dict[object, frozenset[int]] = msgspec.field(default_factory=dict)
    _unarrived: dict[object, frozenset[int]] = msgspec.field(default_factory=dict)
    _lost: dict[object, frozenset[int]] = msgspec.field(default_factory=dict)

    def absent(self, rank: int, wait: Wait) -> frozenset[int]:
        """The ranks whose arrival `wait` of `rank` needs and that are not there.

        A wait goes by its identity here: it has to be one of the snapshot's.
        """
        key = rank, id(wait)
        if key not in self._absent:
            self._absent[key] = self._absent_at(rank, wait)
        return self._absent[key]

    def _absent_at(self, rank: int, wait: Wait) -> frozenset[int]:
        match wait:
            case InCollective(group=None):
                return NOBODY
            case InCollective():
                absent = self._unarrived_at(wait)
            case InP2P():
                peers = frozenset(wait.peers or wait.members or self.ranks)
                peers = peers if wait.peers else peers - {rank}
                absent = frozenset(peer for peer in peers if not serves(self._process(peer), rank, wait))
                return absent if wait.peers or absent == peers else NOBODY
            case JoinsRPC():
                absent = self._outside_rpc
            case AtRendezvous():
                absent = self._not_met_at(self.ranks[rank].master)
            case InRPC(meets_all=True):
                absent = self._staying_in_rpc
            case InRPC():
                return frozenset(wait.peers)
            case OnLock(holder=int(pid)):
                holder = self.rank_of(pid)
                return NOBODY if holder is None or holder == rank else frozenset((holder,))
            case InStore() | OnLock() | OnThread() | OnCondition() | OnDevice():
                return NOBODY
            case OnChild() | OnInput() | OnIO():
                return NOBODY
        return absent - {rank} if rank in absent else absent

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
            case InRPC() | OnThread(circular=False) | OnCondition() | OnDevice():
                return BY_ITSELF  # threads that serve calls do so whatever the others of theirs wait for
            case OnThread():
                return NEVER
            case InStore():
                return BY_ITSELF if self._others_act else NEVER
            case OnLock(holder=int(pid)) if pid in self._children:
                return self._of_process(pid, ())
            case OnLock():
                by_nobody_else = isinstance(wait.holder, str) and wait.holder != "unknown"
                return NEVER if by_nobody_else or self.absent(rank, wait) else BY_ITSELF
            case OnChild():
                return self._of_children(self.ranks[rank])
            case OnInput():
                return NEVER if self.snapshot.stdin == "silent" else BY_ITSELF
            case OnIO():
                waiter = self._process(rank)
                ends = {*wait.ends} - {waiter.pid if waiter is not None else None}
                return [need for pid in ends for need in self._of_process(pid, ())] or BY_ITSELF

    def hopeless(self, rank: int, wait: Wait) -> bool:
        """True for a wait that no rank can end any more, whatever the threads of this one do."""
        if not isinstance(wait, ForRanks):
            return False
        if self._is_disputed(rank, wait):
            return True
        absent = self.absent(rank, wait)
        return not (absent.isdisjoint(self._never) and absent.isdisjoint(self._contradict(wait)))

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
    def anybody(self) -> Need:
        """Any rank that goes on."""
        return Need(frozenset(self.ranks), any_one=True)

    def never_comes(self, view: RankView) -> bool:
        """True for a rank that has ended, or that will never be started.

        What it did at last may reach another rank a moment after its end.
        """
        if view.process is None:
            exited = view.state == "exited"
            return exited or (view.state == "missing" and not self._may_start_more)
        ended = view.process.ended
        return ended is not None and self.snapshot.time - ended >= STILL

    def in_turn(self, rank: int) -> list[ProcessView]:
        """The process of a rank, and those that it waits for, or that could end its wait, in turn."""
        first = self._process(rank)
        processes: dict[int, ProcessView] = {}
        pending = [first] if first is not None else []
        while pending:
            process = pending.pop()
            processes[process.pid] = process
            waits = (*process.blocking, *process.through)
            pids = {pid for wait in waits for pid in self._ending(process.pid, wait)}
            pending += [self._by_pid[pid] for pid in pids & self._by_pid.keys() - processes.keys()]
        return list(processes.values())

    def is_outside(self, wait: Wait) -> bool:
        """True for a wait that something outside of the job may end at any time."""
        if isinstance(wait, OnIO):
            return self._by_pid.keys().isdisjoint(wait.ends)
        return isinstance(wait, OnCondition)

    def _ending(self, waiter: int, wait: Wait) -> Collection[int]:
        """Pids of the processes that could end a wait of process `waiter`, as far as they are known."""
        if ended_by_unknown(wait):
            return self._at_large
        match wait:
            case OnIO() if wait.ends:
                return wait.ends
            case OnLock(holder=int(pid)):
                return (pid,)
            case OnChild() | OnCondition() | OnIO() | OnLock(shared=True):
                children = self._below(waiter)
                workers = [child.pid for child in children if child.kind == "dataloader-worker"]
                loads = wait.op == DATA_LOADER and workers
                return workers if loads else [child.pid for child in children if child.kind == "process"]
            case _:
                return ()

    def _below(self, pid: int) -> list[ProcessView]:
        """The processes below a rank, or those that one of its children has started."""
        if pid in self._children:
            return [process for process in self._by_pid.values() if process.parent == pid]
        rank = self.rank_of(pid)
        children = self.ranks[rank].children if rank is not None else ()
        return [child.process for child in children if child.process.alive]

    @cached_property
    def _at_large(self) -> list[int]:
        """Pids of the processes that may go on: each may hold, or write to, what nobody is seen at."""
        of_ranks = (view.process for view in self.ranks.values() if view.process is not None)
        children = (child for child in self._children.values() if child.kind == "process")
        return [*(p.pid for p in of_ranks if not p.blocked), *(p.pid for p in children)]

    @cached_property
    def _by_pid(self) -> dict[int, ProcessView]:
        """Pid -> process of the job, where it runs."""
        of_ranks = (view.process for view in self.ranks.values() if view.process is not None)
        processes = (*self._children.values(), *self.snapshot.launchers, *of_ranks)
        return {process.pid: process for process in processes if process.alive}

    def rank_of(self, pid: int) -> int | None:
        """The rank that process `pid` is, or belongs to."""
        return self._owners.get(pid)

    @cached_property
    def _owners(self) -> dict[int, int]:
        """Pid -> the rank that the process is, or belongs to."""
        return {
            process.pid: rank
            for rank, view in reversed([*self.ranks.items()])
            if view.process is not None
            for process in (view.process, *(child.process for child in view.children))
        }

    @cached_property
    def _children(self) -> dict[int, ProcessView]:
        """Pid -> child of a rank."""
        views = reversed([*self.ranks.values()])
        return {child.process.pid: child.process for view in views for child in reversed(view.children)}

    @cached_property
    def _processes(self) -> frozenset[int]:
        """The ranks of which the process is known."""
        return frozenset(rank for rank, view in self.ranks.items() if view.process is not None)

    @cached_property
    def _never(self) -> frozenset[int]:
        return frozenset(rank for rank, view in self.ranks.items() if self.never_comes(view))

    def _unarrived_at(self, wait: InCollective) -> frozenset[int]:
        """The members that have not arrived at a collective: the same for all who are in it."""
        call = likeness(wait)
        if call not in self._unarrived:
            members = frozenset(wait.members or self.ranks)
            arrivals = (m for m in members & self._processes if arrived(self._process(m), wait))
            self._unarrived[call] = members.difference(arrivals)
        return self._unarrived[call]

    def _contradict(self, wait: ForRanks) -> frozenset[int]:
        """The members that have issued another operation where a collective is."""
        if not isinstance(wait, InCollective) or wait.group is None:
            return NOBODY
        call = likeness(wait)
        if call not in self._lost:
            absent = self._unarrived_at(wait)
            self._lost[call] = frozenset(m for m in absent if contradicts(self._process(m), wait))
        return self._lost[call]

    def _not_met_at(self, master: str | None) -> frozenset[int]:
        """The ranks that have not joined, and are not in the rendezvous at an address either."""
        if master not in self._unarrived:
            absent = (rank for rank, view in self.ranks.items() if not _meets(view, master))
            self._unarrived[master] = frozenset(absent)
        return self._unarrived[master]

    @cached_property
    def _outside_rpc(self) -> frozenset[int]:
        return frozenset(rank for rank, view in self.ranks.items() if not view.reached_rpc)

    @cached_property
    def _staying_in_rpc(self) -> frozenset[int]:
        """The ranks that are not in `rpc.shutdown`."""
        return frozenset(rank for rank in self.ranks if not _leaves_rpc(self._process(rank)))

    def _process(self, rank: int) -> ProcessView | None:
        view = self.ranks.get(rank)
        return None if view is None else view.process

    def _of_children(self, view: RankView) -> list[Need]:
        """A rank that waits for its children goes on when one of them does, or has ended."""
        children = [child.process for child in view.children if child.process.kind != "helper"]
        return [need for child in children for need in self._of_child(child)] if children else [Need()]

    def _of_child(self, process: ProcessView, passed: Collection[int] = ()) -> Sequence[Need]:
        """What lets a child go on.

        Args:
            passed: pids of processes that wait for it, which can do nothing for it then.
        """
        if not process.blocked or process.acting_thread is not None:
            return BY_ITSELF
        if any(isinstance(wait, InCollective | AtRendezvous) for wait in process.blocking):
            return (self.anybody,)
        ends = [wait.ends for wait in process.blocking if isinstance(wait, OnIO)]
        if len(ends) < len(process.blocking) or not all(ends):
            return BY_ITSELF
        peers = {pid for pids in ends for pid in pids} - {process.pid, *passed}
        if not peers and any(process.pid in pids for pids in ends):
            return BY_ITSELF  # another thread of it may
        return [need for pid in peers for need in self._of_process(pid, {process.pid, *passed})]

    def _of_process(self, pid: int, passed: Collection[int]) -> Sequence[Need]:
        """What lets a process go on: it may be a rank, a child of one, or none of the job's."""
        child = self._children.get(pid)
        if child is not None:
            return self._of_child(child, passed) if child.alive else NEVER
        rank = self.rank_of(pid)
        return BY_ITSELF if rank is None else (Need(frozenset((rank,))),)

    @cached_property
    def _others_act(self) -> bool:
        """True while a process that is not a rank may still set a key."""
        return self._may_start_more or any(
            child.kind == "process" and child.where is not None and child.may_act
            for child in self._children.values()
        )

    @cached_property
    def _may_start_more(self) -> bool:
        """True while some process outside the ranks could still start one."""
        if self.snapshot.job.launcher in AGENTS:
            return False
        launchers = self.snapshot.launchers
        return any(process.alive and not process.waits_for_child for process in launchers)


def ended_by_unknown(wait: Wait) -> bool:
    """True for a wait that a process ends of which nothing is known."""
    if isinstance(wait, OnIO):
        return not wait.ends and wait.target != SIGNAL
    return isinstance(wait, OnLock) and wait.on_file and wait.holder == "unknown"


def _meets(view: RankView, master: str | None) -> bool:
    """True for a rank that has joined, or that is in the rendezvous at an address."""
    if view.joined:
        return True
    alive = view.process is not None and view.process.alive
    same = None in (master, view.master) or master == view.master
    return alive and view.state == "rendezvous" and same


def _leaves_rpc(process: ProcessView | None) -> bool:
    waits = process.waits if process is not None and process.alive else ()
    return any(isinstance(wait, InRPC) and wait.meets_all for wait in waits)
