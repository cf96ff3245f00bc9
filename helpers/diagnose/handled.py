"""The exception that ranks are handling while others wait for them: the first event. No I/O."""

from __future__ import annotations

from msgspec.structs import replace

from ..model.facts import Handled, ProcessView, Verdict
from ..model.frames import innermost_user
from ..model.waits import OnCondition
from ..model.wording import place, sentence, spoken
from .scene import Facts

CAUSES = ("collective-mismatch", "missing-rank")
"""Causes that an exception on some ranks leads to."""


def first_handled(facts: Facts, verdict: Verdict) -> Handled | None:
    """The exception that some ranks are handling while others, which handle none, wait for them.

    Where all are handling one, or where a rank has communicated in its handler before, or polls there,
    that is how the program is written: a training loop may stand in an `except`.
    """
    if verdict.outcome != "hang" or verdict.cause not in CAUSES:
        return None
    raised = {
        rank: process.handling
        for rank, process in facts.graph.alive.items()
        if process.handling is not None and not (_polls(process) or _has_communicated(process))
    }
    first = next((error for rank, error in sorted(raised.items()) if rank in verdict.culprits), None)
    where = innermost_user(first.stack) if first is not None else None
    handling = {rank for rank, process in facts.graph.alive.items() if process.handling is not None}
    if first is None or where is None or handling >= facts.graph.alive.keys():
        return None
    alike = (rank for rank, error in raised.items() if innermost_user(error.stack) == where)
    return Handled(tuple(sorted(alike)), first, where)


def while_handling(verdict: Verdict, handled: Handled) -> Verdict:
    """The verdict with the exception that came before what it tells."""
    error = f"{handled.error.text.removesuffix('.')}, raised at {place(handled.where)}"
    clause = f"{spoken(handled.ranks)} got there while handling {error}"
    return replace(
        verdict,
        summary=f"{verdict.summary} {sentence(clause)}.",
        where=handled.where,
        evidence=(*verdict.evidence, clause),
    )


def _polls(process: ProcessView) -> bool:
    """True for a process that tests a condition again and again; an exception may be how it is told."""
    return any(isinstance(wait, OnCondition) for wait in process.blocking)


def _has_communicated(process: ProcessView) -> bool:
    """True for a process that has made a call from the line of its handler at which it is now.

    The traceback of an exception begins in the function that has caught it.
    """
    caught = process.handling.stack[-1:] if process.handling is not None else ()
    inside = {
        frame
        for frame in process.stack
        if any((frame.file, frame.function) == (at.file, at.function) for at in caught)
    }
    pending = {(call.group, call.seq) for call in process.collectives if not call.done}
    return any(
        not inside.isdisjoint(call.stack) and (issued.group, number) not in pending
        for issued in process.issued
        for number, call in enumerate(issued.calls, start=issued.first)
    )
