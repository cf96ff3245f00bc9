"""Operands or a generator live on different devices."""

from __future__ import annotations

from ...model.facts import Verdict
from ...model.wording import place, sentence, spoken
from ..messages import OTHER_DEVICES
from ..scene import Facts


def find(facts: Facts) -> Verdict | None:
    """The first failure is torch's own complaint about devices."""
    event = facts.first
    if event is None or event.error is None or not OTHER_DEVICES.search(event.error.message):
        return None
    ranks = facts.ranks_saying(OTHER_DEVICES)
    return Verdict(
        outcome="error",
        cause="device-mismatch",
        detail=f"{spoken(ranks)}: {event.error.text}",
        summary=f"{sentence(spoken(ranks))} mix devices at {place(event.where)}: {event.error.text}",
        culprits=ranks,
        where=event.where,
        evidence=(f"rank {event.rank}: {event.error.text}",),
    )
