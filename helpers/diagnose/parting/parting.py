"""Where the ranks of a job parted: the statement, and the calls before it. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from msgspec.structs import replace

from ...model.facts import ProcessView, RankView, Verdict
from ...model.findings import Mismatch
from ...model.issued import NEW_GROUP, Issued
from ...model.parting import Parting
from ...model.waits import RECEIVES, SENDS, InCollective, InP2P, InStore
from ...model.wording import stack_of
from ..matching import divergence
from ..scene import Facts
from .collectives import OPERATIONS
from .contexts import Stack
from .divergence import Divergence
from .omission import unsent
from .other_group import other_group
from .parted import apart_by, exited, one_of, parted
from .trace import Trace

OF_WAYS = frozenset(
    (
        *("collective-mismatch", "shape-mismatch", "missing-rank"),
        *("rank-exited", "rendezvous-incomplete", "unknown"),
    )
)
"""The causes that come from ranks that go different ways."""


def parting(facts: Facts, verdict: Verdict) -> Parting | None:
    """Where ranks went different ways: the statement, and the calls from which on they differ."""
    if verdict.cause not in OF_WAYS or _may_be_past(verdict):
        return None
    places = tuple(met for desync in facts.desyncs for met in desync.places)
    statement = _statement(facts, verdict)
    if statement is None:
        return Parting(history=places) if places else None
    return replace(statement, history=places)


def _statement(facts: Facts, verdict: Verdict) -> Parting | None:
    """The statement at which ranks went different ways, or those that may have decided."""
    excluded = facts.excluded if verdict.outcome == "error" else {}
    if excluded and verdict.cause == "collective-mismatch":
        return _excluded(facts, excluded)
    ended = _finished(facts) if verdict.cause == "rank-exited" else []
    statement = exited({rank: _stack(view) for rank, view in facts.graph.ranks.items()}, ended)
    if statement is not None or _shifted(facts):
        return statement
    statement = _parted(facts, verdict, ended)
    if statement is not None and statement.kind is not None:
        return statement
    # What a rank calls in a group of others it passes: it has left nothing out.
    passes = isinstance(verdict.finding, Mismatch) and bool(verdict.finding.outside)
    return other_group(facts) or (None if passes else statement) or _unsent(facts)


def _may_be_past(verdict: Verdict) -> bool:
    """True where sizes differ in a call out of which a rank may have come: it is only further then."""
    return verdict.cause == "shape-mismatch" and verdict.outcome == "error" and not verdict.proved


def _parted(facts: Facts, verdict: Verdict, ended: Collection[int]) -> Parting | None:
    """The statement of which all groups tell whose calls have come apart."""
    groups: list[str | None] = [desync.group for desync in facts.desyncs]
    if any(wait.op == NEW_GROUP for rank in facts.stuck for wait in facts.waits(rank)[:1]):
        groups = [NEW_GROUP]
    statements = [
        parted(
            _traces(facts, group, ended),
            verdict.culprits,
            facts.graph.waited_for,
            mismatch=isinstance(verdict.finding, Mismatch) and not verdict.finding.messages,
        )
        for group in groups or [_busiest(facts)]
    ]
    places = {
        (statement.where, statement.kind) if statement is not None else None for statement in statements
    }
    statement = statements[0] if len(places) == 1 else None
    decided = statement is not None and statement.kind is not None
    return None if statement is not None and decided and _are_roles(facts, statement) else statement


def _unsent(facts: Facts) -> Parting | None:
    """What a message depends on that one rank waits for and the other has sent, or received, before."""
    for rank in sorted(facts.stuck):
        for wait in facts.waits(rank)[:1]:
            if not isinstance(wait, InP2P) or len(wait.peers) != 1 or wait.peers[0] not in facts.stuck:
                continue
            (peer,) = wait.peers
            peer_waits = facts.waits(peer)[:1]
            if any(
                isinstance(peer_wait, InP2P) and peer_wait.sends != wait.sends
                for peer_wait in peer_waits
            ):
                continue
            process, peer_process = facts.processes((rank, peer))
            conditions = unsent(
                (rank, process.stack[::-1]),
                (peer, peer_process.stack[::-1]),
                RECEIVES if wait.sends else SENDS,
                peer_process.messages,
                [
                    message
                    for at in facts.stuck
                    if at != peer
                    for message in facts.processes([at])[0].messages
                ],
            )
            if conditions:
                return one_of(conditions, (peer,))
    return None


def _excluded(facts: Facts, excluded: Mapping[int, Divergence]) -> Parting:
    """The condition that keeps ranks from the call that has failed, of the first of them."""
    traces = {rank: Trace(rank, _stack(view)) for rank, view in facts.graph.ranks.items()}
    rank, condition = next(iter(excluded.items()))
    failed_rank = facts.first.rank if facts.first is not None else None
    assert failed_rank is not None
    return apart_by(condition, {failed_rank: traces[failed_rank], rank: traces[rank]}, traces)


def _collective(facts: Facts, rank: int, stack: Stack) -> str:
    """The collective that a rank has come to and cannot leave without the others; empty for none.

    Who waits for a handle has issued its collective somewhere else.
    """
    for wait in facts.waits(rank)[:1]:
        if isinstance(wait, InCollective) and not wait.enqueued:
            return f"{wait.op} in {wait.group}"
    failed = facts.aborted.get(rank)
    if failed is not None:
        return failed.op
    return next((frame.function for frame in reversed(stack) if frame.function in OPERATIONS), "")


def _busiest(facts: Facts) -> str | None:
    """The group in which most calls are known."""
    counts: Counter[str] = Counter()
    for view in facts.graph.ranks.values():
        counts.update(
            {
                history.group: len(history.calls)
                for history in (view.process.issued if view.process else ())
            }
        )
    return max(counts, key=lambda group: counts[group], default=None)


def _traces(facts: Facts, group: str | None, ended: Collection[int]) -> dict[int, Trace]:
    traces = {}
    for rank, view in facts.graph.ranks.items():
        issued = _issued(view.process, group) if view.process is not None else None
        stack = _stack(view)
        through = rank in ended and not stack
        if stack or through:
            history = (issued.first, issued.calls, issued.values) if issued is not None else (1, (), ())
            traces[rank] = Trace(rank, stack, *history, through, _collective(facts, rank, stack))
    return traces


def _issued(process: ProcessView, group: str | None) -> Issued | None:
    """What a rank has issued in a group, or to create groups."""
    if group == NEW_GROUP:
        return process.new_groups
    return next((history for history in process.issued if history.group == group), None)


def _stack(view: RankView) -> Stack:
    """Where a rank is, or was when it ended, outermost frame first."""
    return stack_of(view.process)[::-1] if view.process is not None else ()


def _finished(facts: Facts) -> list[int]:
    """The ranks that have ended without an exception."""
    return [rank for rank, view in facts.dead.items() if view.process and view.process.error is None]


def _are_roles(facts: Facts, statement: Parting) -> bool:
    """True where ranks are to go different ways: one waits for a message or a key of the other.

    That one is in the same statement, in such a wait as well, or has come out of it.
    """
    pair = statement.branches[:2]
    waits = [facts.waits(way.ranks[0])[:1] for way in pair]
    of_roles = [any(isinstance(wait, InP2P | InStore) for wait in rank_waits) for rank_waits in waits]
    through = any(not way.label.startswith("in its") for way in pair)
    return any(of_roles) and (through or all(of_roles))


def _shifted(facts: Facts) -> bool:
    """True when the calls are known to differ from earlier on, and not from which lines."""
    early = None if facts.desyncs else divergence(facts.graph.ranks, facts.graph.core)
    return early is not None and any(
        (wait.group, wait.seq) != early[:2]
        for rank in early[2]
        for wait in facts.waits(rank)
        if isinstance(wait, InCollective)
    )
