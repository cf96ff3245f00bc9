"""A rank is alive but never arrives where the others wait, or did not before they gave up."""

from __future__ import annotations

from helpers.diagnose.events import Event
from helpers.diagnose.scene import Facts, Finding, doing, operation, place, spoken
from helpers.diagnose.standing import blocking
from helpers.model.facts import ProcessView


def find(facts: Facts) -> Finding | None:
    """A stuck rank is stopped, reads an input that never comes, or waits for a key nobody sets.

    Or the first failure is that ranks have waited for another until their timeout.
    """
    if facts.first is not None:
        return _given_up(facts, facts.first)
    held_up = tuple(sorted(rank for rank in facts.graph.core if _held_up(facts, rank)))
    return describe(facts, held_up, proved=True) if held_up else None


def _given_up(facts: Facts, first: Event) -> Finding | None:
    """The first failure is a rank that has waited for others until its own timeout."""
    if first.rank is None or not (first.consequence and first.timeout):
        return None
    failed = {event.rank for event in facts.events if event.error is not None}
    absent = tuple(
        rank
        for rank, view in sorted(facts.graph.ranks.items())
        if rank not in failed and view.process is not None and not _waited(view.process)
    )
    if not absent:
        return None
    where = facts.where(absent)
    was = "was" if len(absent) == 1 else "were"
    return Finding(
        cause="missing-rank",
        detail=f"{spoken(absent)} {was} at {place(where)} when {spoken((first.rank,))} gave up waiting",
        summary=(
            f"{spoken(absent).capitalize()} {was} still at {place(where)} when "
            f"{spoken((first.rank,))} gave up waiting at {place(first.where)}: {first.text}."
        ),
        culprits=absent,
        where=where,
        evidence=(f"{spoken((first.rank,))}: {first.text}",),
    )


def _waited(process: ProcessView) -> bool:
    """True for a rank that waited for others itself, or that came to its end."""
    return process.waited or bool(blocking(process)) or process.left or process.exit_code == 0


def describe(facts: Facts, ranks: tuple[int, ...], *, proved: bool) -> Finding:
    """The finding for `ranks` that are somewhere else than where the others wait."""
    waiting = sorted(
        rank
        for rank, peers in facts.graph.waited_for.items()
        if rank not in ranks and peers & set(ranks)
    )
    view = facts.graph.ranks[ranks[0]]
    state = doing(view.process)
    where = view.process.where if view.process else None
    verb = "is" if len(ranks) == 1 else "are"
    after = ""
    if waiting:
        need = "waits" if len(waiting) == 1 else "wait"
        waits = facts.waits(waiting[0])
        if waits and waits[0].kind in ("collective", "p2p"):
            after = f" and has not come to {operation(waits[0])}, where {spoken(waiting)} {need}"
        else:
            after = f", and {spoken(waiting)} {need} for {'it' if len(ranks) == 1 else 'them'}"
    return Finding(
        cause="missing-rank",
        detail=f"{spoken(ranks)} {verb} {state} at {place(where)}",
        summary=f"{spoken(ranks).capitalize()} {verb} {state} at {place(where)}{after}.",
        culprits=ranks,
        where=where,
        evidence=tuple(_evidence(facts, rank) for rank in (*ranks, *waiting)),
        proved=proved,
        hang=True,
    )


def _held_up(facts: Facts, rank: int) -> bool:
    view = facts.graph.ranks[rank]
    if view.process is not None and view.process.state == "stopped":
        return True
    return any(wait.kind in ("input", "io", "store", "process", "lock") for wait in facts.waits(rank))


def _evidence(facts: Facts, rank: int) -> str:
    process = facts.graph.ranks[rank].process
    still = f", unmoved for {process.still:.0f} s" if process else ""
    return f"rank {rank} is {doing(process)} at {place(process.where if process else None)}{still}"
