"""Where the ranks of a job parted: the statement, and the calls before it. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...model.facts import RankView, Verdict
from ...model.parting import Parting
from ...model.waits import InCollective, InP2P, InStore
from ...model.wording import stack_of
from ...program.blocks import after_all
from ..matching import divergence
from ..scene import Facts
from .counted import Made
from .history import Apart
from .parted import exited, parted, users_of
from .statement import Stack

OF_WAYS = frozenset(
    (
        *("collective-mismatch", "shape-mismatch", "missing-rank"),
        *("rank-exited", "rendezvous-incomplete", "unknown"),
    )
)
"""The causes that come from ranks that go different ways."""


def parting(facts: Facts, verdict: Verdict) -> Parting | None:
    """Where ranks went different ways: the statement, and the calls from which on they differ."""
    if verdict.cause not in OF_WAYS:
        return None
    now = {rank: _stack(view) for rank, view in facts.graph.ranks.items()}
    stacks: Mapping[int, Stack] = now
    apart = facts.apart
    told = tuple(met for one in apart for met in one.told)
    made: Mapping[int, Made] = {}
    if len(apart) == 1:
        (first,) = apart
        then = {rank: tuple(reversed(call.stack)) for rank, call in first.calls.items()}
        if any(users_of(now[rank]) != users_of(stack) for rank, stack in then.items() if stack):
            stacks = then
        made = first.made if first.whole else {}
    statement = None
    if verdict.cause == "rank-exited":
        statement = exited(now, _left(facts))
        stacks = _to_the_end(stacks)
    sure = len(apart) <= 1 and all(one.sure for one in apart)
    if statement is None and sure and not _shifted(facts):
        known = {rank: stack for rank, stack in stacks.items() if stack}
        statement = parted(known, verdict.culprits, made, facts.graph.waited_for)
        if statement is not None and (_are_roles(facts, statement) or _are_alike(apart, statement)):
            statement = None
    if statement is None:
        return Parting(history=told) if told else None
    return replace(statement, history=told)


def _stack(view: RankView) -> Stack:
    """Where a rank is, or was when it ended, outermost frame first."""
    return stack_of(view.process)[::-1] if view.process is not None else ()


def _to_the_end(stacks: Mapping[int, Stack]) -> dict[int, Stack]:
    """The stacks, with those of ranks that are through with the program: behind its last line."""
    main = next((stack for stack in stacks.values() if stack), ())
    at = next((n for n, frame in enumerate(main) if frame.user), None)
    if at is None or main[at].function != "<module>":
        return dict(stacks)
    frame = main[at]
    end = replace(frame, line=after_all(frame.text), values={"__name__": "__main__"})
    return {rank: stack or (*main[:at], end) for rank, stack in stacks.items()}


def _left(facts: Facts) -> list[int]:
    """The ranks that have ended without an exception."""
    return [rank for rank, view in facts.gone.items() if view.process and view.process.error is None]


def _are_roles(facts: Facts, statement: Parting) -> bool:
    """True where ranks are to go different ways: one waits for a message or a key of the other.

    That one is in the same statement, in such a wait as well, or has come out of it.
    """
    pair = statement.branches[:2]
    waits = [facts.waits(way.ranks[0])[:1] for way in pair]
    of_roles = [any(isinstance(wait, InP2P | InStore) for wait in found) for found in waits]
    through = any(not way.label.startswith("in its") for way in pair)
    return any(of_roles) and (through or all(of_roles))


def _are_alike(apart: Sequence[Apart], statement: Parting) -> bool:
    """True where the ranks have made the same call in two branches of one statement: no harm in that."""
    calls = [call.op for one in apart for call in one.calls.values()]
    inside = all(way.label.startswith("in its") for way in statement.branches[:2])
    return inside and len(set(calls)) == 1


def _shifted(facts: Facts) -> bool:
    """True when the calls are known to differ from earlier on, and not from which lines."""
    early = None if facts.apart else divergence(facts.graph.ranks, facts.graph.core)
    return early is not None and any(
        (wait.group, wait.seq) != early[:2]
        for rank in early[2]
        for wait in facts.waits(rank)
        if isinstance(wait, InCollective)
    )
