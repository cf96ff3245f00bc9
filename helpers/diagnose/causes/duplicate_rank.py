"""Two processes act as one rank of one job."""

from __future__ import annotations

from ...model.clauses import Predicate, clauses, grouped, verb
from ...model.facts import ChildView, Verdict
from ...model.findings import DuplicateRank
from ...model.wording import joined, place, sentence, spoken
from ..messages import CHECKED_IN
from ..scene import Facts


def find(facts: Facts) -> Verdict | None:
    """A child of a rank has joined the job's process group under a rank that is taken already."""
    separate = _checked_in_twice(facts) or _started_twice(facts)
    if separate is not None:
        return separate
    pairs = [
        (view.rank, child)
        for view in facts.snapshot.ranks
        for child in view.children
        if child.joined_as_rank is not None and view.rank is not None
    ]
    if not pairs:
        return None
    twice = dict(reversed(pairs))
    states = {rank: _runs_again(child) for rank, child in twice.items()}
    joined_at = next((child.joined_at for _, child in pairs if child.joined_at), None)
    joins = grouped({rank: _kind(child) for rank, child in twice.items()})
    again = "has joined the process group a second time as"
    return Verdict(
        outcome="error",
        cause="duplicate-rank",
        detail=joined([f"{what} {again} {spoken(ranks)}" for what, ranks in joins.items()]),
        summary=f"{sentence(clauses(states))}.",
        culprits=tuple(sorted(twice)),
        where=joined_at,
        finding=DuplicateRank(ranks=tuple(sorted(twice)), joined_at=joined_at),
        evidence=tuple(
            f"process {child.process.pid}, a {child.process.kind} of rank {rank}, joined as "
            f"rank {child.joined_as_rank}"
            for rank, child in pairs
        ),
    )


def _checked_in_twice(facts: Facts) -> Verdict | None:
    """NCCL says that two processes are one rank."""
    event = facts.first
    match = CHECKED_IN.search(event.error.message) if event is not None and event.error else None
    if event is None or match is None:
        return None
    rank, size = match.groups()
    return Verdict(
        outcome="error",
        cause="duplicate-rank",
        detail=f"two processes have joined as rank {rank} of {size}",
        summary=f"Two processes have joined as rank {rank} of {size}: {event.text}.",
        culprits=(int(rank),),
        finding=DuplicateRank(ranks=(int(rank),), separate=True),
        evidence=(f"{event.who}: {event.text}",),
    )


def _started_twice(facts: Facts) -> Verdict | None:
    """A log has processes of several tasks or machines that have started as one rank."""
    doubled = facts.snapshot.doubled
    if not doubled:
        return None
    detail = f"two processes have started as {spoken(doubled)}"
    return Verdict(
        outcome="error",
        cause="duplicate-rank",
        detail=detail,
        summary=f"{sentence(detail)}: two tasks think that they are one node.",
        culprits=doubled,
        finding=DuplicateRank(ranks=doubled, separate=True),
    )


def _kind(child: ChildView) -> str:
    return "a DataLoader worker" if child.process.kind == "dataloader-worker" else "a child process"


def _runs_again(child: ChildView) -> Predicate:
    line = f" at {place(child.joined_at)}" if child.joined_at else ""
    again = f"{_kind(child)} runs the launch code again{line}"
    return verb("exists", "exist", f"twice: {again} and joins the job as the rank it inherited")
