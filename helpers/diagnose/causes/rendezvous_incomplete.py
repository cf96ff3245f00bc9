"""Fewer processes have joined than the world size says."""

from __future__ import annotations

import math

from ...model.facts import UNTOLD, ProcessView, RankView, Verdict
from ...model.waits import JoinsRPC, OnLock
from ...model.wording import doing, place, spoken
from ..events import Event
from ..matching import addresses
from ..messages import JOINED, NOT_ALL_JOINED
from ..scene import Facts, minority


def find(facts: Facts) -> Verdict | None:
    """A rank is stuck in the rendezvous, or its rendezvous has timed out."""
    event = facts.first
    if event is not None:
        if event.error is None or not NOT_ALL_JOINED.search(event.error.message):
            return None
        counted = JOINED.search(event.error.message)
        if counted is not None and not facts.all_seen:
            return _counted(event, *sorted(int(number) for number in counted.groups() if number))
        return _verdict(facts, hang=False)
    if not facts.snapshot.ranks:
        return _without_ranks(facts)
    stuck = facts.stuck or _last_seen(facts)
    waiting = [rank for rank in stuck if facts.graph.ranks[rank].state == "rendezvous"]
    if not waiting or any(isinstance(w, OnLock) for rank in facts.graph.core for w in facts.waits(rank)):
        return None
    return _verdict(facts, hang=True)


def _last_seen(facts: Facts) -> frozenset[int]:
    """The ranks that a dump shows: nobody saw whether those they wait for came."""
    if facts.patience == math.inf:
        return frozenset()
    return frozenset(rank for rank, process in facts.graph.alive.items() if process.still >= UNTOLD)


def _counted(event: Event, joined: int, world: int) -> Verdict:
    """Ranks that cannot be seen have not come: how many, tells the one that has waited for them."""
    who = "a rank" if event.rank is None else spoken((event.rank,))
    assert event.error is not None
    return Verdict(
        outcome="error",
        cause="rendezvous-incomplete",
        detail=f"{joined} of {world} ranks joined",
        summary=(
            f"Only {joined} of {world} ranks have joined the process group when {who} gave up waiting; "
            "which did not cannot be told from here."
        ),
        where=event.where,
        evidence=(f"{who}: {event.error.text}",),
    )


def _verdict(facts: Facts, *, hang: bool) -> Verdict | None:
    ranks = facts.graph.ranks
    rpc = any(isinstance(wait, JoinsRPC) for rank in facts.stuck for wait in facts.waits(rank))
    there = sorted(r for r, v in ranks.items() if _is_there(v, rpc=rpc))
    failed = {event.rank for event in facts.events if event.error is not None}
    known = set(facts.snapshot.store_ranks)
    absent = sorted(r for r in ranks if r not in there and r not in failed and r not in known)
    seen = [r for r in absent if ranks[r].state != "unseen"]
    lost = [r for r in seen if r not in facts.graph.free]
    world = facts.snapshot.job.world_size or len(ranks)
    found = addresses(ranks)
    if hang and not absent and len(found) > 1:
        listed = "; ".join(f"{spoken(who)} at {address}" for address, who in found.items())
        culprits = minority({rank: address for address, who in found.items() for rank in who})
        return Verdict(
            outcome="hang",
            cause="rendezvous-incomplete",
            detail=f"the ranks look for the store at different addresses: {listed}",
            summary=f"The ranks never meet: {listed}.",
            culprits=culprits,
            where=facts.where(culprits),
            evidence=(listed,),
        )
    if not absent:
        return _all_there(facts, there) if hang else None
    beyond = [rank for rank in ranks if rank >= world]
    elsewhere = "no file tells of them" if _last_seen(facts) else "they run on other nodes"
    described = [_describe(facts, rank) for rank in seen] or [elsewhere]
    if beyond:
        described.append(f"{spoken(beyond)} lies beyond the world size of {world}, which begins at 0")
    states = "; ".join(described)
    joined = world - len(absent)
    come = "come to init_rpc" if rpc else "joined the process group"
    return Verdict(
        outcome="hang" if hang else "error",
        cause="rendezvous-incomplete",
        detail=f"{joined} of {world} ranks joined; {spoken(absent)} did not",
        summary=(f"Only {joined} of {world} ranks have {come}; {spoken(absent)} never did: {states}."),
        culprits=tuple(lost or seen),
        where=facts.where(lost or seen) or facts.where(there),
        evidence=(f"{joined} of {world} ranks in the rendezvous", states, *_store(facts)),
    )


def _is_there(view: RankView, *, rpc: bool) -> bool:
    """True for a rank that is in the rendezvous, or has come out of it.

    Args:
        rpc: whether it is that of `init_rpc`.
    """
    return view.reached_rpc if rpc else view.state == "rendezvous" or view.joined


def _without_ranks(facts: Facts) -> Verdict | None:
    """The launcher waits in a rendezvous of its own for other nodes, and has started no rank."""
    waiting = [
        process
        for process in facts.snapshot.launchers
        if process.alive and _waited(process) >= facts.patience and process.awaits_nodes
    ]
    if not waiting:
        return None
    if facts.snapshot.strangers:
        return _other_job(facts)
    return Verdict(
        outcome="hang",
        cause="rendezvous-incomplete",
        detail="the launcher waits for nodes that have not joined its rendezvous",
        summary=(
            "The launcher has started no rank: it waits in its rendezvous for other nodes, which have "
            f"not joined for {_waited(waiting[0]):.0f} s."
        ),
        evidence=("the launcher is in the rendezvous of torchrun",),
    )


def _waited(process: ProcessView) -> float:
    """Seconds for which a launcher has waited: its store takes processor time now and then."""
    return max(process.idle, process.still)


def _other_job(facts: Facts) -> Verdict:
    """The launcher has come to the rendezvous of another job, which has all its nodes."""
    port, owner = facts.snapshot.strangers[0]
    return Verdict(
        outcome="hang",
        cause="rendezvous-incomplete",
        detail=f"the launcher waits in a rendezvous at port {port} that belongs to another job",
        summary=(
            f"The launcher has started no rank: the rendezvous at port {port} belongs to process "
            f"{owner.pid} outside the job, and there it waits for a place."
        ),
        evidence=(
            "the launcher is in the rendezvous of torchrun",
            f"port {port} belongs to process {owner.pid}: {owner.command}",
        ),
        blockers=(owner,),
    )


def _all_there(facts: Facts, there: list[int]) -> Verdict:
    """Every rank is there and looks for the store, which nobody serves, or does not finish."""
    answers, address = facts.snapshot.store_answers, facts.snapshot.job.master
    if answers is False:
        detail = f"nobody listens at {address}, where the ranks look for the store"
        summary = f"The ranks look for the store at {address}, and nobody listens there."
    else:
        detail = f"every rank is in the rendezvous at {address}, and none comes out of it"
        summary = (
            f"Every rank is in the rendezvous at {address}, and none comes out of it: look whether that "
            "address can be reached from here."
        )
    return Verdict(
        outcome="hang",
        cause="rendezvous-incomplete",
        detail=detail,
        summary=summary,
        where=facts.where(there),
        evidence=_store(facts),
    )


def _store(facts: Facts) -> tuple[str, ...]:
    """What a look into the store has shown."""
    answers, address = facts.snapshot.store_answers, facts.snapshot.job.master
    if answers is None:
        return ()
    if not answers:
        return (f"nobody listens at the store's address {address}",)
    left = facts.snapshot.store_ranks
    seen = f"{spoken(left)} left an address in it" if left else "no rank has left an address in it"
    return (f"the store at {address} answers; {seen}",)


def _describe(facts: Facts, rank: int) -> str:
    view = facts.graph.ranks[rank]
    if view.process is None:
        watched = any(process.beacon for process in facts.processes(tuple(facts.alive)))
        return f"rank {rank} {'was never started' if watched else 'has no process here'}"
    where = view.process.where
    return f"rank {rank} is {doing(view.process)}{f' at {place(where)}' if where else ''}"
