"""A lock file, or a lock on a file, that no process will release."""

from __future__ import annotations

from ...model.facts import Blocker, Verdict
from ...model.waits import OnLock
from ...model.wording import doing, place, plural, sentence, spoken
from ..scene import Facts


def find(facts: Facts) -> Verdict | None:
    """A stuck rank waits for a lock: its holder is stuck too, or no process holds it."""
    if facts.first is not None:
        return None
    core = facts.graph.core
    waits = [wait for rank in sorted(core) for wait in _on_files(facts, rank)]
    waits += [w for r in sorted(facts.stuck) for w in _on_files(facts, r) if _holder(facts, w) in core]
    return _verdict(facts, waits[0]) if waits else None


def _on_files(facts: Facts, rank: int) -> list[OnLock]:
    """The locks outside its own process that a rank waits for."""
    return [wait for wait in facts.waits(rank) if isinstance(wait, OnLock) and wait.on_file]


def _holder(facts: Facts, wait: OnLock) -> int | None:
    """The rank that holds a lock."""
    return facts.graph.needs.rank_of(wait.holder) if isinstance(wait.holder, int) else None


def _holders(facts: Facts, first: int) -> tuple[int, ...]:
    """Every rank that holds a lock for which a stuck rank waits."""
    found = {_holder(facts, wait) for rank in facts.stuck for wait in _on_files(facts, rank)}
    return tuple(sorted({first, *(rank for rank in found if rank is not None)}))


def _verdict(facts: Facts, wait: OnLock) -> Verdict:
    waiting = sorted(
        rank for rank in facts.alive if any(w.path == wait.path for w in _on_files(facts, rank))
    )
    lock = f"the lock {wait.path}" if wait.path else "a lock on a file"
    holder = _holder(facts, wait)
    blockers: tuple[Blocker, ...] = ()
    if holder is not None:
        process = facts.graph.ranks[holder].process
        who = f"rank {holder}, which is {doing(process)} at {place(process.where if process else None)}"
    elif isinstance(wait.holder, int):
        who = f"process {wait.holder} outside the job"
        blockers = (Blocker(wait.holder, f"holds {lock}", ""),)
    elif wait.holder == "no process":
        who = "no running process: it was left behind"
    else:
        who = "nobody that can be seen from here"
    culprits = () if holder is None else _holders(facts, holder)
    stuck = f"{spoken(waiting)} {plural(waiting, 'waits', 'wait')} for {lock}, held by {who}"
    return Verdict(
        outcome="hang",
        cause="file-lock",
        detail=stuck,
        summary=f"{sentence(stuck)}.",
        culprits=culprits,
        where=facts.where(culprits or tuple(waiting)),
        evidence=(
            f"{wait.op} on {wait.path}" if wait.path else wait.op,
            f"held by {who}",
            *(f"rank {rank} waits for it at {place(facts.where([rank]))}" for rank in waiting),
        ),
        blockers=blockers,
    )
