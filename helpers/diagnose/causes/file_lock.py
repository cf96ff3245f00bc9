"""A lock file, or a lock on a file, that no process will release."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...model.clauses import clauses, standing, verb
from ...model.facts import EXTENSION, Blocker, Verdict
from ...model.findings import FileLock
from ...model.waits import InCollective, OnLock
from ...model.wording import place, plural, sentence, spoken
from ..scene import Facts


def find(facts: Facts) -> Verdict | None:
    """A stuck rank waits for a lock: its holder is stuck too, or no process holds it."""
    if facts.first is not None:
        return None
    if facts.snapshot.locks and facts.patience < math.inf:
        return _from_log(facts)
    core = facts.graph.core
    waits = [wait for rank in sorted(core) for wait in _on_files(facts, rank)]
    waits += [w for r in sorted(facts.stuck) for w in _on_files(facts, r) if _holder(facts, w) in core]
    return _verdict(facts, waits) if waits else None


def _from_log(facts: Facts) -> Verdict:
    """A log tells of processes that wait for locks; that nobody will release them is not known."""
    by_path: dict[str, list[int]] = {}
    for rank, wait in facts.snapshot.locks:
        by_path.setdefault(wait.path, []).extend([] if rank is None else [rank])
    waits = []
    for path, ranks in by_path.items():
        who = f"{spoken(ranks)} {plural(ranks, 'waits', 'wait')}" if ranks else "a process waits"
        waits.append(f"{who} for {path if path == EXTENSION else f'the lock {path}'}")
    ended = any(wait.interrupted for _, wait in facts.snapshot.locks) or bool(facts.snapshot.ended_by)
    detail = "; ".join(waits)
    return Verdict(
        outcome="hang" if ended or facts.stuck else "running",
        cause="file-lock",
        proved=False,
        detail=detail,
        summary=f"{sentence(detail)}; who holds it is not told.",
        evidence=tuple(waits),
        finding=FileLock(path=None if EXTENSION in by_path else next(iter(by_path))),
    )


def _on_files(facts: Facts, rank: int) -> list[OnLock]:
    """The locks outside its own process that a rank waits for."""
    return [wait for wait in facts.waits(rank) if isinstance(wait, OnLock) and wait.on_file]


def _holder(facts: Facts, wait: OnLock) -> int | None:
    """The rank that holds a lock."""
    return facts.graph.needs.rank_of(wait.holder) if isinstance(wait.holder, int) else None


def _verdict(facts: Facts, waits: Sequence[OnLock]) -> Verdict:
    """The verdict on the locks that ranks wait for, each for its own or all for one."""
    locks = {wait.path: wait for wait in reversed(waits)}
    waiting = {
        rank: locks[wait.path]
        for rank in sorted(facts.alive)
        for wait in _on_files(facts, rank)[::-1]
        if wait.path in locks
    }
    holders = {_holder(facts, wait) for wait in waiting.values()}
    culprits = tuple(sorted(holder for holder in holders if holder is not None))
    texts = {wait: f"{_name(wait)}, held by {_who(facts, wait)}" for wait in waiting.values()}
    stuck = clauses({r: verb("waits", "wait", f"for {texts[wait]}") for r, wait in waiting.items()})
    return Verdict(
        outcome="hang",
        cause="file-lock",
        detail=stuck,
        summary=f"{sentence(stuck)}.",
        culprits=culprits,
        where=facts.where(culprits or tuple(waiting)),
        evidence=(
            *(f"{wait.op} on {text}" for wait, text in texts.items()),
            *(
                f"rank {rank} waits for {_name(wait)} at {place(facts.where([rank]))}"
                for rank, wait in waiting.items()
            ),
        ),
        finding=FileLock(
            path=waits[0].path,
            left_behind=any(wait.holder == "no process" for wait in waiting.values()),
            across_call=any(isinstance(w, InCollective) for r in culprits for w in facts.waits(r)),
        ),
        blockers=tuple(
            Blocker(wait.holder, f"holds {_name(wait)}", "")
            for wait in texts
            if isinstance(wait.holder, int) and _holder(facts, wait) is None
        ),
    )


def _name(wait: OnLock) -> str:
    return f"the lock {wait.path}" if wait.path else "a lock on a file"


def _who(facts: Facts, wait: OnLock) -> str:
    """Who holds a lock, and what that one does."""
    holder = _holder(facts, wait)
    if holder is not None:
        return f"rank {holder}, which {standing(facts.graph.ranks[holder].process).singular}"
    if isinstance(wait.holder, int):
        return f"process {wait.holder} outside the job"
    if wait.holder == "no process":
        return "no running process: it was left behind"
    return "nobody that can be seen from here"
