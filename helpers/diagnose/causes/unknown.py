"""Nothing the instrument knows explains what it saw."""

from __future__ import annotations

from ...model.facts import Verdict
from ...model.waits import InCollective
from ...model.wording import operation, place, plural, sentence, spoken
from ..scene import Facts


def find(facts: Facts) -> Verdict | None:
    """Something failed, or ranks are stuck, and no other cause applies."""
    event = facts.first
    job = facts.snapshot.job
    if event is not None:
        who = "The command" if event.rank is None else f"Rank {event.rank}"
        return Verdict(
            outcome="error",
            cause="unknown",
            detail=event.text,
            summary=f"{who} {event.text}; nothing that was seen explains why.",
            culprits=(event.rank,) if event.rank is not None else (),
            where=event.where,
            evidence=(f"{who}: {event.text}",),
        )
    if facts.stuck:
        ranks = tuple(sorted(facts.graph.core))
        return _unseen(facts, ranks) or _together(facts, ranks) or _unexplained(facts, ranks)
    if job.exit_code or job.signal:
        how = f"exit code {job.exit_code}" if job.exit_code else f"signal {job.signal}"
        return Verdict(
            outcome="error",
            cause="unknown",
            detail=f"the command ended with {how}",
            summary=f"The command ended with {how}; no process of it said why.",
        )
    return None


def _unseen(facts: Facts, ranks: tuple[int, ...]) -> Verdict | None:
    """Ranks that use no CPU and into which nobody can see."""
    if any(process.visible for process in facts.processes(ranks)):
        return None
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
    who, call, where = spoken(ranks), operation(calls[0]), calls[0].where
    return Verdict(
        outcome="hang",
        cause="unknown",
        detail=f"{who} are in the same {call}, which does not finish",
        summary=(
            f"{sentence(who)} are in the same {call} at {place(where)} and it does not finish: "
            "nobody is missing, so look at the network or the devices."
        ),
        where=where,
    )


def _unexplained(facts: Facts, ranks: tuple[int, ...]) -> Verdict:
    """Ranks are in operations of which nobody can see why they do not end."""
    listed = "; ".join(
        f"rank {rank} in {operation(wait)} at {place(wait.where)}"
        for rank in ranks
        for wait in facts.waits(rank)[:1]
    )
    who = spoken(ranks)
    return Verdict(
        outcome="hang",
        cause="unknown",
        detail=f"{who} cannot go on: {listed}",
        summary=f"{sentence(who)} cannot go on, and nothing that was seen says why: {listed}.",
        where=facts.where(ranks),
    )
