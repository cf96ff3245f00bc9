"""Operands or a generator live on different devices."""

from __future__ import annotations

from ...model.clauses import clauses, verb
from ...model.facts import Verdict
from ...model.wording import place, sentence
from ..messages import OTHER_DEVICES
from ..scene import Facts, texts


def find(facts: Facts) -> Verdict | None:
    """The first failure is torch's own complaint about devices."""
    event = facts.first
    if event is None or event.error is None or not OTHER_DEVICES.search(event.error.message):
        return None
    events = facts.saying(OTHER_DEVICES)
    mix = {r: verb("mixes", "mix", f"devices at {place(e.where)}: {e.text}") for r, e in events.items()}
    return Verdict(
        outcome="error",
        cause="device-mismatch",
        detail="; ".join(texts(events)) or event.text,
        summary=sentence(clauses(mix)) or f"Devices are mixed: {event.text}",
        culprits=tuple(events),
        where=event.where,
        evidence=texts(events) or (event.text,),
    )
