"""A rank is alive but never arrives where the others wait, or did not before they gave up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...model.facts import UNTOLD, ProcessView, RankView, Verdict
from ...model.waits import Communication, ForRanks
from ...model.wording import doing, group_name, last_seen, operation, place, plural, sentence, spoken
from ..events import Event
from ..messages import NOT_PASSED
from ..scene import Facts


def find(facts: Facts) -> Verdict | None:
    """A stuck rank is not in a call that the others could join.

    Or no rank is stuck, but others have waited for a rank at work for longer than patience. Or the first
    failure is that ranks have waited for another until their timeout.
    """
    if facts.first is not None:
        return _gave_up(facts, facts.first)
    if facts.stuck:
        absent = sorted(rank for rank in facts.graph.core if _is_elsewhere(facts, rank))
    else:
        absent = _late(facts)
    return _verdict(facts, absent) if absent else None


def _gave_up(facts: Facts, first: Event) -> Verdict | None:
    """The first failure is a rank that has waited for others until its own timeout."""
    if first.rank is None or not (first.consequence and first.timeout):
        return None
    failed = {event.rank for event in facts.events if event.error is not None}
    named = _named(first)
    absent = named or tuple(
        rank
        for rank, view in sorted(facts.graph.ranks.items())
        if rank not in failed and view.process is not None and not _waited(view.process)
    )
    if not absent:
        return None
    where = facts.where(absent)
    was = plural(absent, "was", "were")
    stay = f"{was} still at {place(where)}" if where else "had not come"
    at = f" at {place(first.where)}" if first.where else ""
    return Verdict(
        outcome="error",
        cause="missing-rank",
        detail=f"{spoken(absent)} {stay} when {spoken((first.rank,))} gave up waiting",
        summary=(
            f"{sentence(spoken(absent))} {stay} when {spoken((first.rank,))} gave up waiting{at}: "
            f"{first.text}."
        ),
        culprits=absent,
        where=where,
        evidence=(f"{spoken((first.rank,))}: {first.text}",),
    )


def _named(event: Event) -> tuple[int, ...]:
    """The ranks that a barrier says have not come."""
    match = NOT_PASSED.search(event.error.message) if event.error is not None else None
    return tuple(int(number) for number in re.findall(r"\d+", match[1])) if match else ()


def _waited(process: ProcessView) -> bool:
    """True for a rank that waited for others itself, or that came to its end."""
    return (
        process.ended_in_call
        or bool(process.blocking)
        or process.interpreter_finished
        or process.exit_code == 0
    )


def _is_elsewhere(facts: Facts, rank: int) -> bool:
    """True for a rank that is asleep or stopped, say, or that waits for something else than ranks."""
    waits = facts.waits(rank)
    apart = not waits or any(not isinstance(wait, ForRanks) for wait in waits)
    process = facts.graph.ranks[rank].process
    if not apart or process is None or not process.visible:
        return False
    shows_why = waits or process.beacon or process.asleep or process.state == "stopped"
    alone = len(facts.graph.ranks) == 1
    return bool(shows_why) or alone or rank in facts.graph.awaited


def _is_untraced(process: ProcessView | None) -> bool:
    """True for a rank of which only what it has issued is known, not where it is."""
    return process is not None and not process.stack and process.recorded


def _late(facts: Facts) -> list[int]:
    """The ranks at work for which others have waited longer than patience."""
    alive = facts.graph.alive
    long = [rank for rank, process in alive.items() if process.unmoved >= facts.patience]
    late = facts.graph.awaited_by(long) & alive.keys()
    return sorted(peer for peer in late if not facts.graph.waited_for[peer])


def _verdict(facts: Facts, ranks: Sequence[int]) -> Verdict:
    """The verdict on `ranks` that are elsewhere than where the others wait."""
    culprits = {*ranks}
    waiting = [rank for rank in facts.graph.waiting_for(culprits) if rank not in culprits]
    view = facts.graph.ranks[ranks[0]]
    state = doing(view.process)
    where = view.process.where if view.process else None
    verb, has, them = plural(ranks, ("is", "has", "it"), ("are", "have", "them"))
    stay = f"{spoken(ranks)} {verb} {state} at {place(where)}{_child_is(view)}"
    if _is_untraced(view.process):
        stay = f"{spoken(ranks)} {has} issued nothing{_last(view)}"
    after = ""
    if waiting:
        need = plural(waiting, "waits", "wait")
        waits = facts.waits(waiting[0])
        if waits and isinstance(waits[0], Communication):
            after = f" and {has} not come to {operation(waits[0])}, where {spoken(waiting)} {need}"
        else:
            after = f", and {spoken(waiting)} {need} for {them}"
    return Verdict(
        outcome="hang" if facts.stuck else "running",
        cause="missing-rank",
        detail=stay,
        summary=f"{sentence(stay)}{after}.",
        culprits=tuple(ranks),
        where=where,
        evidence=(
            *(_evidence(facts, rank) for rank in (*ranks, *waiting)),
            *(told for rank in ranks for told in _failed_below(facts, rank)),
        ),
    )


def _last(view: RankView) -> str:
    """` after all_reduce #7 of the default group`: the newest that a rank has issued, if any."""
    newest = view.process.collectives[-1:] if view.process is not None else ()
    return "".join(f" after {one.op} #{one.seq} of {group_name(one.group)}" for one in newest)


def _failed_below(facts: Facts, rank: int) -> Iterator[str]:
    """The processes below a rank that have failed: it may wait for what they should have done."""
    for child in facts.graph.ranks[rank].children:
        process = child.process
        if process.signal is not None or process.exit_code:
            how = f"signal {process.signal}" if process.signal else f"exit code {process.exit_code}"
            yield f"a process of rank {rank} has ended with {how}{last_seen(process.where)}"


def _child_is(view: RankView) -> str:
    """`, which is ...` for a rank that waits for a child whose line is known."""
    if view.process is None or not view.process.waits_for_child:
        return ""
    children = [child.process for child in view.children if child.process.alive]
    child = next((process for process in children if process.where is not None), None)
    return f", which is {doing(child)} at {place(child.where)}" if child is not None else ""


def _evidence(facts: Facts, rank: int) -> str:
    view = facts.graph.ranks[rank]
    process = view.process
    if _is_untraced(process):
        return f"rank {rank} has issued nothing{_last(view)}"
    still = f", unmoved for {process.unmoved:.0f} s" if process and process.unmoved < UNTOLD else ""
    return f"rank {rank} is {doing(process)} at {place(process.where if process else None)}{still}"
