"""An uncaught exception that none of the other causes explains."""

from __future__ import annotations

import re

from ...model.clauses import Predicate, clauses, every_clause, same
from ...model.facts import CUT_OFF, Verdict
from ...model.findings import Raised
from ...model.wording import place, sentence, spoken
from ..events import Event
from ..messages import LOGGED, topic
from ..scene import Facts

_RANK = re.compile(r"rank (\d+)")


def find(facts: Facts) -> Verdict | None:
    """Python cannot run the script, or the first failure is an exception.

    Ranks that raise the same one are named together.
    """
    if facts.snapshot.job.script_error is not None:
        return _unreadable_script(facts, facts.snapshot.job.script_error)
    event = facts.first
    if event is None or event.error is None or facts.follows_from_unseen or event.error.type == CUT_OFF:
        return None
    if topic(event.error.text) == "duplicate gpu":
        return _one_gpu(facts, event)
    raised = {
        failure.rank: _raised(failure)
        for failure in reversed(facts.events)
        if failure.rank is not None
        and failure.error is not None
        and not failure.consequence
        and (failure.error.type, failure.where) == (event.error.type, event.where)
    }
    if not raised:
        raised = dict.fromkeys(event.ranks, _raised(event))
    who = "the GPU's driver" if event.error.type == "Xid" else event.who
    listed = clauses(raised) or f"{who} {_raised(event).singular}"
    return Verdict(
        outcome="error",
        cause="error",
        detail=event.error.text,
        summary=f"{sentence(listed)}.",
        culprits=tuple(sorted(raised)),
        where=event.where,
        evidence=tuple(map(sentence, every_clause(raised))) or (sentence(listed),),
        finding=Raised(event.error.type, topic(event.error.text), logged=event.error.type in LOGGED),
    )


def _one_gpu(facts: Facts, event: Event) -> Verdict:
    """NCCL refuses ranks that have chosen one GPU, and names them."""
    assert event.error is not None
    messages = " ".join(failure.error.message for failure in facts.events if failure.error)
    ranks = sorted({int(number) for number in _RANK.findall(messages)})
    return Verdict(
        outcome="error",
        cause="error",
        detail=event.error.text,
        summary=f"{sentence(spoken(ranks))} use one GPU, which NCCL refuses: {event.error.message}.",
        culprits=tuple(ranks),
        where=event.where,
        evidence=(f"{event.who}: {event.error.text}",),
        finding=Raised(event.error.type, "duplicate gpu"),
    )


def _raised(event: Event) -> Predicate:
    """What a process has raised, where, and from what."""
    assert event.error is not None
    at = f" at {place(event.where)}" if event.where else ""
    caused_by = event.error.caused_by.removesuffix(".")
    why = f", caused by {caused_by}" if caused_by else ""
    verb = "reported" if event.error.type in LOGGED else "raised"
    return same(f"{verb} {event.error.text.removesuffix('.')}{at}{why}")


def _unreadable_script(facts: Facts, reason: str) -> Verdict:
    """Python could not find or parse the script: no line of the job has run."""
    return Verdict(
        outcome="error",
        cause="error",
        detail=reason,
        summary=f"Python cannot run the script: {reason}.",
        where=facts.snapshot.job.script_line,
        evidence=(reason,),
        finding=Raised(),
    )
