"""An uncaught exception that none of the other causes explains."""

from __future__ import annotations

from ...model.facts import Verdict
from ...model.wording import place, sentence, spoken
from ..scene import Facts


def find(facts: Facts) -> Verdict | None:
    """Python cannot run the script, or the first failure is an exception.

    Ranks that raise the same one are named together.
    """
    if facts.snapshot.job.script_error is not None:
        return _unreadable_script(facts, facts.snapshot.job.script_error)
    event = facts.first
    if event is None or event.error is None or facts.follows_from_unseen:
        return None
    same = tuple(
        sorted(
            {
                other.rank
                for other in facts.events
                if other.rank is not None
                and other.error is not None
                and not other.consequence
                and (other.error.type, other.where) == (event.error.type, event.where)
            }
        )
    )
    ranks = same or (() if event.rank is None else (event.rank,))
    who = sentence(spoken(ranks)) if ranks else "The command"
    where = f" at {place(event.where)}" if event.where else ""
    caused_by = event.error.caused_by.removesuffix(".")
    why = f", caused by {caused_by}" if caused_by else ""
    return Verdict(
        outcome="error",
        cause="error",
        detail=event.error.text,
        summary=f"{who} raised {event.error.text.removesuffix('.')}{where}{why}.",
        culprits=ranks,
        where=event.where,
        evidence=(f"{who}: {event.error.text}{why}",),
    )


def _unreadable_script(facts: Facts, reason: str) -> Verdict:
    """Python could not find or parse the script: no line of the job has run."""
    return Verdict(
        outcome="error",
        cause="error",
        detail=reason,
        summary=f"Python cannot run the script: {reason}.",
        where=facts.snapshot.job.script_line,
        evidence=(reason,),
    )
