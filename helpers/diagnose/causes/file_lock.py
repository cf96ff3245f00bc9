"""A lock file, or a lock on a file, that no process will release."""

from __future__ import annotations

from ...model.facts import Blocker, Verdict, Wait
from ...model.wording import doing, place, plural, sentence, spoken
from ..scene import Facts


def find(facts: Facts) -> Verdict | None:
    """A stuck rank waits for a lock: its holder is stuck too, or no process holds it."""
    if facts.first is not None:
        return None
    for rank in sorted(facts.graph.core):
        for wait in facts.waits(rank):
            if wait.kind == "lock" and wait.key:
                return _verdict(facts, wait)
    return None


def _holders(facts: Facts, first: int) -> tuple[int, ...]:
    """Every rank that holds a lock for which a stuck rank waits."""
    found = {
        facts.graph.rank_of(wait.holder)
        for rank in facts.stuck
        for wait in facts.waits(rank)
        if wait.kind == "lock" and wait.holder
    }
    return tuple(sorted({first, *(rank for rank in found if rank is not None)}))


def _verdict(facts: Facts, wait: Wait) -> Verdict:
    waiting = sorted(
        rank
        for rank in facts.alive
        if any(w.kind == "lock" and w.key == wait.key for w in facts.waits(rank))
    )
    holder = facts.graph.rank_of(wait.holder) if wait.holder else None
    blockers: tuple[Blocker, ...] = ()
    if holder is not None:
        process = facts.graph.ranks[holder].process
        who = f"rank {holder}, which is {doing(process)} at {place(process.where if process else None)}"
    elif wait.holder:
        who = f"process {wait.holder} outside the job"
        blockers = (Blocker(wait.holder, f"holds the lock {wait.key}", ""),)
    elif wait.holder == 0:
        who = "no running process: it was left behind"
    else:
        who = "nobody that can be seen from here"
    culprits = () if holder is None else _holders(facts, holder)
    stuck = (
        f"{spoken(waiting)} {plural(waiting, 'waits', 'wait')} for the lock {wait.key}, held by {who}"
    )
    return Verdict(
        outcome="hang",
        cause="file-lock",
        detail=stuck,
        summary=f"{sentence(stuck)}.",
        culprits=culprits,
        where=facts.where(culprits or tuple(waiting)),
        evidence=(
            f"{wait.op} on {wait.key}",
            f"held by {who}",
            *(f"rank {rank} waits for it at {place(facts.where([rank]))}" for rank in waiting),
        ),
        blockers=blockers,
    )
