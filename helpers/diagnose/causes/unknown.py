"""Nothing the instrument knows explains what it saw."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from ...model.clauses import Predicate, clauses, every_clause, grouped, standing, verb
from ...model.facts import CUT_OFF, UNTOLD, Job, RankView, Verdict
from ...model.findings import Unexplained
from ...model.waits import InCollective, Wait
from ...model.wording import END_UNSEEN, operation, place, plural, sentence, spoken
from ..events import Event
from ..network import SEE_THE_REST, in_words, peer_in, unanswered
from ..scene import Facts, passed_unnumbered

FIRST = 1
"""The number of the first collective of a group: what is late there has never worked."""


def find(facts: Facts) -> Verdict | None:
    """Something failed, or ranks are stuck, and no other cause applies."""
    verdict = _find(facts)
    if verdict is None or verdict.finding is not None:
        return verdict
    blind = bool(facts.snapshot.not_seen)
    return replace(verdict, finding=Unexplained(blind=blind, on_gpus=_may_be_transport(facts)))


def _may_be_transport(facts: Facts) -> bool:
    """True for a job on GPUs of which no collective is known to have completed."""
    issued = (
        entry for process in facts.processes(tuple(facts.graph.ranks)) for entry in process.collectives
    )
    return facts.snapshot.job.hardware == "cuda" and not any(
        entry.done or entry.seq > FIRST for entry in issued
    )


def _find(facts: Facts) -> Verdict | None:
    if facts.first is not None:
        return _of_event(facts, facts.first)
    if facts.stuck:
        ranks = tuple(sorted(facts.graph.core))
        return _unseen(facts, ranks) or _together(facts, ranks) or _unexplained(facts, ranks)
    job = facts.snapshot.job
    verdict = _for_unseen(facts) or _cut_off(facts) or _from_outside(facts) or _ended(job)
    return verdict or _some_ended(facts) or _looked_into(facts) or _untold(facts)


def _of_event(facts: Facts, event: Event) -> Verdict:
    if facts.follows_from_unseen and facts.unseen and facts.snapshot.job.command:
        return _from_elsewhere(facts, event)
    return _after_unseen(facts, event) if facts.ended_unseen else _failed(facts, event)


def _some_ended(facts: Facts) -> Verdict | None:
    """Files tell that a process has ended, and neither which nor how."""
    views = [view.process for view in facts.snapshot.ranks if view.rank is None and view.process]
    if facts.patience == math.inf or not any(process.end_unseen for process in views):
        return None
    detail = "a process of the job has ended, and what was read tells neither which nor how"
    return Verdict("error", "unknown", detail=detail, summary=f"{sentence(detail)}.", evidence=(detail,))


def _looked_into(facts: Facts) -> Verdict | None:
    """Somebody has looked into processes that rest, and of each nothing more than its wait is known.

    Which ranks they are may be told or not; one of which the main thread was not seen may wait as well.
    """
    alive = [view for view in facts.snapshot.ranks if view.process and view.process.alive]
    views = [v for v in alive if v.process and (v.process.visible or v.process.still == UNTOLD)]
    waits = {_who(view): view.process for view in views if view.process}
    resting = all(p.still == UNTOLD and (p.blocking or not p.visible) for p in waits.values())
    if facts.patience == math.inf or facts.snapshot.timed or not (views and resting):
        return None
    states = [
        f"{who} {standing(process).singular}" for who, process in waits.items() if process.blocking
    ]
    listed = "; ".join(states) or f"nothing that was read says what {' and '.join(waits)} waited for"
    nameless = any(view.rank is None for view in views)
    untold = " Which rank that is, no file tells." if nameless else ""
    return Verdict(
        outcome="hang",
        cause="unknown",
        detail=listed,
        summary=f"{sentence(listed)}.{untold}",
        evidence=tuple(states),
        finding=Unexplained(blind=True),
    )


def _who(view: RankView) -> str:
    """`rank 1`, `process 4242`, `a process of the job`."""
    if view.rank is not None:
        return f"rank {view.rank}"
    pid = view.process.pid if view.process is not None else 0
    return f"process {pid}" if pid > 0 else "a process of the job"


def _untold(facts: Facts) -> Verdict | None:
    """Files tell of a failure, or of something that is not understood, and of no rank."""
    snapshot = facts.snapshot
    telling = snapshot.telling or (() if snapshot.timed else snapshot.warned)
    if not telling or facts.patience == math.inf:
        return None
    failed = snapshot.alarming or not snapshot.telling
    text = "shows neither a failure nor ranks that wait"
    if failed:
        text = "tells of a failure, and of none that is known here"
    return Verdict(
        outcome="error" if snapshot.alarming else "running",
        cause="unknown",
        proved=False,
        detail=f"what was read {text}",
        summary=f"What was read {text}. The lines below say most.",
        evidence=telling,
        finding=Unexplained(blind=True),
    )


def _from_outside(facts: Facts) -> Verdict | None:
    """Somebody has ended the job, and no rank had failed."""
    ended_by = facts.snapshot.ended_by
    if not ended_by or facts.patience == math.inf:
        return None
    return Verdict(
        outcome="error",
        cause="unknown",
        detail=ended_by,
        summary=f"{sentence(ended_by)}; nothing shows that a rank had failed before.",
        evidence=(ended_by,),
        finding=Unexplained(from_outside=True, hangup="SIGHUP" in ended_by or "hangup" in ended_by),
    )


def _failed(facts: Facts, event: Event) -> Verdict:
    """Something has failed, and nothing says why."""
    who, culprits = sentence(event.who), event.ranks
    cut_off = event.error is not None and event.error.type == CUT_OFF  # it may be a consequence
    if cut_off:
        culprits = tuple(
            sorted({e.rank for e in facts.events if e.error == event.error and e.rank is not None})
        )
        who = sentence(spoken(culprits)) if culprits else who
    failed = f"raised {event.text.removesuffix('.')}" if event.error is not None else event.text
    return Verdict(
        outcome="error",
        cause="unknown",
        detail=event.text,
        summary=f"{who} {failed}; nothing that was seen explains why.",
        culprits=() if facts.follows_from_unseen or cut_off else culprits,
        where=event.where,
        evidence=(f"{who}: {event.text}",),
        finding=Unexplained(cut_off=cut_off, unread=True) if not facts.snapshot.job.command else None,
    )


def _ended(job: Job) -> Verdict | None:
    """The command has failed, and no process of it has said why."""
    if not (job.exit_code or job.signal):
        return None
    how = f"exit code {job.exit_code}" if job.exit_code else f"signal {job.signal}"
    return Verdict(
        outcome="error",
        cause="unknown",
        detail=f"the command ended with {how}",
        summary=f"The command ended with {how}; no process of it said why.",
    )


def _from_elsewhere(facts: Facts, event: Event) -> Verdict:
    """A rank has lost one that is out of sight, or waited for it in vain: the cause is there."""
    who = event.who
    address = peer_in(event.text)
    peer = f" at {address}" if address else ""
    at = f" at {place(event.where)}" if event.where else ""
    because = f"because of a rank{peer} that is not seen here"
    elsewhere = f"{spoken(facts.unseen)} {plural(facts.unseen, 'is', 'are')} on other machines"
    return Verdict(
        outcome="error",
        cause="unknown",
        detail=f"{who} failed {because}: {event.text}",
        summary=(
            f"{sentence(who)} failed{at} {because}: {elsewhere}, and what happened there "
            f"has to be looked at first. {SEE_THE_REST}."
        ),
        where=event.where,
        evidence=(f"{who}: {event.text}",),
    )


def _after_unseen(facts: Facts, event: Event) -> Verdict:
    """Ranks were gone when a launcher, as it seems, ended the others."""
    detail = f"{spoken(facts.ended_unseen)} {END_UNSEEN}"
    after = f"rank {event.rank}: {event.text}"
    return Verdict(
        outcome="error",
        cause="unknown",
        detail=detail,
        summary=f"{sentence(detail)}; the launcher then seems to have ended the others ({after}).",
        culprits=facts.ended_unseen,
        where=facts.where(facts.ended_unseen),
        evidence=(detail, after),
    )


def _for_unseen(facts: Facts) -> Verdict | None:
    """All ranks whose last moment is known waited for ranks of which nothing is."""
    unseen = {*facts.unseen}
    if facts.patience == math.inf or any(p.still < UNTOLD for p in facts.graph.alive.values()):
        return None
    waits = _waits_for(facts, unseen, ("which was not seen", "which were not seen"))
    if not waits:
        return None
    return Verdict(
        outcome="hang",
        cause="unknown",
        detail=clauses(waits),
        summary=f"{sentence(clauses(waits))}.",
        where=facts.where(sorted(waits)),
    )


def _waits_for(facts: Facts, unseen: Collection[int], who: tuple[str, str]) -> dict[int, Predicate]:
    """What each rank waits in that waits for ranks out of sight, and for which of them.

    Args:
        who: what is said of one that is waited for, and of several.
    """
    peers = facts.graph.waited_for_among(unseen)
    names = {ranks: f"{spoken(sorted(ranks))}, {plural(ranks, *who)}" for ranks in {*peers.values()}}
    return {
        rank: verb("waits", "wait", f"in {operation(facts.waits(rank)[0])} for {names[ranks]}")
        for rank, ranks in peers.items()
        if rank in facts.alive
    }


def _cut_off(facts: Facts) -> Verdict | None:
    """All ranks here wait for ranks out of sight, and what they send there is not answered."""
    who = "which is not seen from here", "which are not seen from here"
    waits = _waits_for(facts, facts.unseen, who)
    silent = in_words(facts, unanswered(facts, waits))
    if not silent or facts.alive.keys() - facts.graph.given_up:
        return None
    return Verdict(
        outcome="hang",
        cause="unknown",
        detail=f"the network: {silent}",
        summary=(
            f"{sentence(clauses(waits))}, and {silent}: look at the network between these machines, and "
            "whether the other one still runs."
        ),
        where=facts.where(sorted(waits)),
        evidence=(silent,),
    )


def _unseen(facts: Facts, ranks: tuple[int, ...]) -> Verdict | None:
    """Ranks that use no CPU and into which nobody can see."""
    if any(process.visible for process in facts.processes(ranks)):
        return None
    if not facts.snapshot.job.command:  # it is known by what it has left
        untold = f"nothing that was read says what {spoken(ranks)} {plural(ranks, 'was', 'were')} doing"
        return Verdict(outcome="hang", cause="unknown", detail=untold, summary=f"{sentence(untold)}.")
    idle = f"{spoken(ranks)} {plural(ranks, 'uses', 'use')} no CPU"
    return Verdict(
        outcome="hang",
        cause="unknown",
        detail=f"{idle}, and no beacon says why",
        summary=(
            f"{sentence(idle)} for {facts.patience:.0f} s, and no beacon runs there that could say why."
        ),
    )


def _together(facts: Facts, ranks: tuple[int, ...]) -> Verdict | None:
    """Every member is in the same collective and nothing moves: the transport itself stalls."""
    first = [wait for rank in ranks for wait in facts.waits(rank)[:1]]
    calls = [wait for wait in first if isinstance(wait, InCollective) and wait.group is not None]
    together = len(ranks) == len(calls) > 1 and len({operation(wait) for wait in calls}) == 1
    if not together or any(facts.graph.waited_for[rank] for rank in ranks):
        return None
    who, call = spoken(ranks), operation(calls[0])
    places = grouped({rank: _at(wait) for rank, wait in zip(ranks, calls, strict=True)})
    listed = "; ".join(f"{spoken(group)}{at}" for at, group in places.items())
    at = f" ({listed})" if len(places) > 1 else next(iter(places))
    so = _who_is_missing(facts, calls)
    silent = in_words(facts, unanswered(facts, facts.stuck))
    so = f"nobody is missing, but {silent}. Look at the network between these machines" if silent else so
    network = f"the network: {silent}; " if silent else ""
    return Verdict(
        outcome="hang",
        cause="unknown",
        detail=f"{network}{who} are in the same {call}, which does not finish",
        summary=(f"{sentence(who)} are in the same {call}{at} and it does not finish: {so}."),
        where=calls[0].where,
        evidence=(silent,) if silent else (),
        finding=Unexplained(
            blind=bool(facts.snapshot.not_seen),
            on_gpus=_may_be_transport(facts),
            never_connected=calls[0].seq == FIRST,
        ),
    )


def _who_is_missing(facts: Facts, calls: Sequence[InCollective]) -> str:
    """What is known of members that are not in a call in which all that are seen are."""
    processes = facts.processes(tuple(sorted(facts.graph.core)))
    groups = [group for process in processes for group in process.groups]
    if calls[0].seq == FIRST and facts.snapshot.job.hardware == "cuda":
        return "nothing has ever completed in this group, so look at what connects the devices first"
    if any(group.guessed for group in groups if group.name == calls[0].group):
        return "whether another member is missing cannot be told"
    if any(wait.seq is None for wait in calls):
        return "nobody is missing, unless it follows an asynchronous operation that cannot be seen"
    return "nobody is missing, so look at the network or the devices"


def _at(wait: Wait) -> str:
    return f" at {place(wait.where)}" if wait.traced else ""


def _state(wait: Wait) -> Predicate:
    return verb("is", "are", f"in {operation(wait)}{_at(wait)}")


def _unexplained(facts: Facts, ranks: tuple[int, ...]) -> Verdict:
    """Ranks are in operations of which nobody can see why they do not end."""
    states = {rank: _state(wait) for rank in ranks for wait in facts.waits(rank)[:1]}
    listed = clauses(states)
    who = spoken(ranks)
    listed = f": {listed}" if listed else ""
    because = f", and nothing that was seen says why{listed}"
    silent = in_words(facts, unanswered(facts, facts.stuck))
    if silent:
        because = f"{listed}. Of these, {silent}: look at the network between these machines"
    passed = passed_unnumbered(facts, {r: wait for r in ranks for wait in facts.waits(r)[:1]})
    if passed is not None:
        leader, follower = passed
        because = (
            f"{listed}. Rank {leader} has already made the call in which rank {follower} is: whether "
            "they met there with tensors of different sizes, or one of them has made a call too many "
            "before, cannot be told without sequence numbers"
        )
    return Verdict(
        outcome="hang",
        cause="unknown",
        detail=f"the network: {silent}" if silent else f"{who} cannot go on{listed}",
        summary=f"{sentence(who)} cannot go on{because}.",
        where=facts.where(ranks),
        evidence=tuple(every_clause(states)),
    )
