"""Fewer processes have joined than the world size says."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from ...model.clauses import Predicate, clauses, same, standing, verb
from ...model.facts import UNTOLD, ProcessView, RankView, Verdict
from ...model.findings import DuplicateRank, RendezvousIncomplete
from ...model.network import StoreView
from ...model.waits import ForRanks, JoinsRPC, OnLock
from ...model.wording import plural, sentence, spoken
from ..events import Event
from ..launchers import launchers_wait
from ..matching import addresses
from ..messages import CANNOT_CONNECT, JOINED, NO_AGENT, NO_INTERFACE, NO_STORE, NOT_ALL_JOINED
from ..network import (
    SET_INTERFACE,
    in_words,
    no_interface,
    offering,
    on_hosts,
    peer_in,
    settings,
    unanswered,
    wrong_interface,
)
from ..scene import Facts, minority


def find(facts: Facts) -> Verdict | None:
    """A rank is stuck in the rendezvous, or its rendezvous has timed out."""
    verdict = _find(facts)
    if verdict is None or verdict.finding is not None:
        return verdict
    return replace(verdict, finding=_finding(facts, verdict))


def _finding(facts: Facts, verdict: Verdict) -> RendezvousIncomplete:
    """How ranks are absent, and what keeps those that are not from meeting."""
    snapshot, ranks = facts.snapshot, facts.graph.ranks
    absent = facts.processes(tuple(rank for rank in verdict.culprits if rank in ranks))
    never = any(ranks[rank].state == "missing" for rank in verdict.culprits if rank in ranks)
    cut_off = _connects_nowhere(facts)
    meets = any(process.rendezvous for process in snapshot.launchers if process.awaits_nodes)
    return RendezvousIncomplete(
        absent=verdict.culprits,
        never_started=never,
        alone=never and len(facts.processes(tuple(ranks))) == 1 and snapshot.job.launcher == "python",
        ended=not cut_off and any(not process.alive for process in absent),
        late=any(map(_is_late, absent)),
        other_nodes=not cut_off and (meets or bool(facts.unseen)),
        wrong_interface=cut_off,
        other_job=bool(verdict.blockers),
    )


def _is_late(process: ProcessView) -> bool:
    """True for a rank that is at a line of its own before it joins."""
    joins = any(isinstance(wait, ForRanks) for wait in process.waits)
    return process.alive and process.where is not None and not joins


def _connects_nowhere(facts: Facts) -> bool:
    """True where ranks have found the store, and cannot connect to each other."""
    ranks = facts.processes(tuple(facts.graph.ranks))
    messages = [process.error.message for process in ranks if process.error is not None]
    cannot = any(CANNOT_CONNECT.search(text) or NO_INTERFACE.search(text) for text in messages)
    return cannot or bool(unanswered(facts, facts.alive))


def _find(facts: Facts) -> Verdict | None:
    event = facts.first
    if event is not None:
        # What follows from something may be seen before what it follows from.
        wrong = (
            wrong_interface(facts, failure) or no_interface(facts, failure)
            for failure in (facts.events if event.consequence else (event,))
        )
        return next(filter(None, wrong), None) or _gave_up(facts, event)
    if not facts.snapshot.ranks:
        return launchers_wait(facts)
    stuck = facts.stuck or _last_seen(facts) or _cut_off(facts)
    waiting = [rank for rank in stuck if facts.graph.ranks[rank].state == "rendezvous"]
    if not waiting or any(isinstance(w, OnLock) for rank in facts.graph.core for w in facts.waits(rank)):
        return None
    return _verdict(facts, hang=True)


def _gave_up(facts: Facts, event: Event) -> Verdict | None:
    """The first failure is that a rank has not found the store, or not all ranks there."""
    if event.error is None:
        return None
    message = event.error.message
    if NO_AGENT.search(event.error.text):
        return _no_store(event, "")
    if unreached := NO_STORE.search(message):
        return _no_store(event, ":".join(filter(None, unreached.groups())))
    if CANNOT_CONNECT.search(message) and not (event.consequence and facts.snapshot.timed):
        return _unconnected(event)
    if not NOT_ALL_JOINED.search(message):
        return None
    counted = JOINED.search(message)
    if counted is not None and int(counted["count"] or 0) > int(counted["world"] or 0):
        return _too_many(event, int(counted["count"]), int(counted["world"]))
    if counted is not None and not facts.all_seen:
        return _counted(event, *sorted(map(int, filter(None, counted.groups()))))
    return _verdict(facts, hang=False)


def _last_seen(facts: Facts) -> frozenset[int]:
    """The ranks that a dump shows: nobody saw whether those they wait for came."""
    if facts.patience == math.inf:
        return frozenset()
    return frozenset(rank for rank, process in facts.graph.alive.items() if process.still >= UNTOLD)


def _cut_off(facts: Facts) -> frozenset[int]:
    """All ranks that are seen, if none has moved, and the store or another rank cannot be reached."""
    unmoved = facts.alive.keys() <= facts.graph.given_up
    return facts.graph.given_up if unmoved and _are_cut_off(facts, facts.alive) else frozenset()


def _are_cut_off(facts: Facts, ranks: Iterable[int]) -> bool:
    """True where the store, or what one of these ranks has connected to, does not answer."""
    return any(store.problem for store in facts.snapshot.stores) or bool(unanswered(facts, ranks))


def _no_store(event: Event, address: str) -> Verdict:
    """A rank has given up looking for the store: its address is wrong, or nobody serves it there."""
    who = event.who if event.own else "a process"
    detail = f"{who} cannot reach the store{f' at {address}' if address else ''}"
    return Verdict(
        outcome="error",
        cause="rendezvous-incomplete",
        detail=detail,
        summary=f"{sentence(detail)} and gives up: nobody has that address, or nobody listens there.",
        where=event.where,
        evidence=(f"{who}: {event.text}",),
        finding=RendezvousIncomplete(unreached=True),
    )


def _too_many(event: Event, joined: int, world: int) -> Verdict:
    """More have joined than there are: the store has served another start, or the job runs twice."""
    detail = f"{joined} processes have joined a group of {world}"
    return Verdict(
        outcome="error",
        cause="duplicate-rank",
        proved=False,
        detail=detail,
        summary=(
            f"{sentence(detail)}: the job was started twice, or its store has served an earlier start. "
            "Nobody is missing."
        ),
        where=event.where,
        evidence=(f"{event.who}: {event.text}",),
        finding=DuplicateRank(separate=True),
    )


def _single_peer(event: Event, joined: int, world: int) -> tuple[int, ...]:
    """The other rank of two, where one alone has joined."""
    return tuple({0, 1} - {*event.ranks}) if (joined, world) == (1, 2) and event.ranks else ()


def _unconnected(event: Event) -> Verdict:
    """A rank cannot connect to the address that another one has given."""
    address = peer_in(event.text)
    detail = f"{event.who} cannot connect to another rank{f' at {address}' if address else ''}"
    return Verdict(
        outcome="error",
        cause="rendezvous-incomplete",
        detail=detail,
        summary=f"{sentence(detail)}: {event.text}. {SET_INTERFACE}",
        where=event.where,
        evidence=(f"{event.who}: {event.text}",),
        finding=RendezvousIncomplete(wrong_interface=True),
    )


def _counted(event: Event, joined: int, world: int) -> Verdict:
    """Ranks that cannot be seen have not come: how many, tells the one that has waited for them."""
    who = "a rank" if event.rank is None else spoken((event.rank,))
    assert event.error is not None
    return Verdict(
        outcome="error",
        cause="rendezvous-incomplete",
        detail=f"{joined} of {world} ranks joined",
        culprits=_single_peer(event, joined, world),
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
    present = sorted(r for r, v in ranks.items() if _is_there(v, rpc=rpc))
    absent = _absent(facts, present)
    visible = [r for r in absent if ranks[r].state != "unseen"]
    if hang and not absent and (separate := _separate(facts, addresses(ranks))) is not None:
        return separate
    # A rank learns from the store whom to connect to: who gets no answer there has joined before, even
    # where the newest look into the store, up to ten seconds old, does not show it.
    if not absent or (hang and not visible and _are_cut_off(facts, present)):
        return _all_present(facts, present) if hang else None
    culprits = [r for r in visible if r not in facts.graph.free] or visible
    world = facts.snapshot.job.world_size or len(ranks)
    states = _states(facts, absent, world)
    joined = world - len(absent)
    phrase = "come to init_rpc" if rpc else "joined the process group"
    return Verdict(
        outcome="hang" if hang else "error",
        cause="rendezvous-incomplete",
        detail=f"{joined} of {world} ranks joined; {spoken(absent)} did not",
        summary=f"Only {joined} of {world} ranks have {phrase}; {spoken(absent)} never did: {states}.",
        culprits=tuple(culprits),
        where=facts.where(culprits) or facts.where(present),
        evidence=(f"{joined} of {world} ranks in the rendezvous", states, *_store(facts)),
    )


def _absent(facts: Facts, present: Collection[int]) -> list[int]:
    """The ranks that have not come, did not fail before, and have left nothing in the store."""
    failed = {event.rank for event in facts.events if event.error is not None}
    in_store = {rank for store in facts.snapshot.stores for rank in store.ranks}
    return sorted(facts.graph.ranks.keys() - failed - in_store - {*present})


def _states(facts: Facts, absent: Sequence[int], world: int) -> str:
    """What the ranks do that have not joined, and which have a number that there is not."""
    described = [clauses({rank: _state(facts, rank) for rank in absent})]
    beyond = [rank for rank in facts.graph.ranks if rank >= world]
    if beyond:
        lies = plural(beyond, "lies", "lie")
        described.append(f"{spoken(beyond)} {lies} beyond the world size of {world}, which begins at 0")
    return "; ".join(described)


def _is_one_store(facts: Facts, by_address: Mapping[str, object]) -> bool:
    """True where the addresses are names of one store: the same ranks have left something in each."""
    stores = [store for store in facts.snapshot.stores if store.address in by_address]
    looked = {store.address for store in stores} == by_address.keys()
    return looked and len({store.ranks for store in stores}) == 1 and bool(stores[0].ranks)


def _separate(facts: Facts, by_address: Mapping[str, list[int]]) -> Verdict | None:
    """The ranks look for the store at different addresses, which are not of one and the same store.

    Args:
        by_address: address -> the ranks that look there.
    """
    if len(by_address) < 2 or _is_one_store(facts, by_address):
        return None
    problems = {store.address: store.problem for store in facts.snapshot.stores if store.problem}
    which = {address: f", which {problem}" for address, problem in problems.items()}
    listed = "; ".join(
        f"{spoken(who)} at {address}{which.get(address, '')}" for address, who in by_address.items()
    )
    lost = sorted(rank for address, who in by_address.items() if address in problems for rank in who)
    culprits = tuple(lost) or minority({r: address for address, who in by_address.items() for r in who})
    return Verdict(
        outcome="hang",
        cause="rendezvous-incomplete",
        detail=f"the ranks look for the store at different addresses: {listed}",
        summary=f"The ranks never meet: {listed}.",
        culprits=culprits,
        where=facts.where(culprits),
        evidence=(listed,),
        finding=RendezvousIncomplete(addresses=True),
    )


def _is_there(view: RankView, *, rpc: bool) -> bool:
    """True for a rank that is in the rendezvous, or has come out of it.

    Args:
        rpc: whether it is that of `init_rpc`.
    """
    return view.reached_rpc if rpc else view.state == "rendezvous" or view.joined


def _all_present(facts: Facts, ranks: list[int]) -> Verdict:
    """Every rank is there and looks for the store, which nobody serves, or does not finish."""
    address = facts.snapshot.job.master
    lost = [(store.address, store.problem) for store in facts.snapshot.stores if store.problem]
    if not lost and _store_is_silent(facts, ranks):
        lost = [(address or "", "does not answer")]
    silent = unanswered(facts, ranks)
    culprits = offering(facts, silent)
    if lost:
        detail = "the ranks look for the store at {}, which {}".format(*lost[0])
        summary = f"{sentence(detail)}."
    elif silent:
        listen = f", where {on_hosts(facts, culprits)} {plural(culprits, 'listens', 'listen')}"
        detail = f"{in_words(facts, silent)}{listen if culprits else ''}{settings(facts, culprits)}"
        summary = (
            f"The ranks have found the store at {address}, but {detail}. The network interface is the "
            f"wrong one, or a firewall is in the way. {SET_INTERFACE}"
        )
    else:
        at = f" at {address}" if address else ""
        inside = [rank for rank in ranks if facts.graph.ranks[rank].state == "rendezvous"]
        detail = f"every rank is in the rendezvous{at}, and none comes out of it"
        if len(inside) < len(ranks):
            stay = f"{plural(inside, 'is', 'are')} in the rendezvous{at}"
            detail = f"{spoken(inside)} {stay}, which all others have come out of"
        summary = f"{sentence(detail)}: look whether that address can be reached from here."
    return Verdict(
        outcome="hang",
        cause="rendezvous-incomplete",
        detail=detail,
        summary=summary,
        culprits=culprits,
        where=facts.where(ranks),
        evidence=_store(facts),
    )


def _store_is_silent(facts: Facts, ranks: list[int]) -> bool:
    """True where a rank gets no answer at the port of the store."""
    port = (facts.snapshot.job.master or "").rpartition(":")[2]
    ends = (end for process in facts.processes(ranks) for end in process.unanswered)
    return any(end.rpartition(":")[2] == port for end in ends)


def _store(facts: Facts) -> tuple[str, ...]:
    """What looks into the store have shown."""
    return tuple(_seen_in(store) for store in facts.snapshot.stores)


def _seen_in(store: StoreView) -> str:
    on = f" from host {store.host}" if store.host else ""
    if store.problem:
        return f"looked at{on}, the store's address {store.address} {store.problem}"
    if not store.listed:
        return f"looked at{on}, the store at {store.address} answers"
    content = (
        f"{spoken(store.ranks)} left an address in it"
        if store.ranks
        else "no rank has left an address in it"
    )
    return f"looked at{on}, the store at {store.address} answers; {content}"


def _state(facts: Facts, rank: int) -> Predicate:
    """What a rank does that has not come."""
    view = facts.graph.ranks[rank]
    if view.state == "unseen":
        if _last_seen(facts):
            return verb("is", "are", "in no file")
        return Predicate("runs on another node", "run on other nodes")
    if view.state == "exited" and view.process is None:
        return same("ended before this look")
    if view.process is None:
        watched = any(process.beacon for process in facts.processes(tuple(facts.alive)))
        return standing(None) if watched else verb("has", "have", "no process here")
    return standing(view.process)
