"""Operands or a generator live on different devices."""

from __future__ import annotations

import re

from ...model.facts import Verdict
from ...model.wording import place, sentence, spoken
from ..scene import Facts

_MISMATCH = re.compile(
    r"Expected all tensors to be on the same device|Expected a '\w+' device type for generator"
    r"|Input type \(\S+\) and weight type|is on \S+, but expected (it|them) to be on"
    r"|cannot be called on meta tensors|Tensor on device \S+ is not on the expected device"
)


def find(facts: Facts) -> Verdict | None:
    """The first failure is torch's own complaint about devices."""
    event = facts.first
    if event is None or event.error is None or not _MISMATCH.search(event.error.message):
        return None
    ranks = tuple(
        sorted(
            {
                other.rank
                for other in facts.events
                if other.rank is not None and other.error and _MISMATCH.search(other.error.message)
            }
        )
    )
    return Verdict(
        outcome="error",
        cause="device-mismatch",
        detail=f"{spoken(ranks)}: {event.error.text}",
        summary=f"{sentence(spoken(ranks))} mix devices at {place(event.where)}: {event.error.text}",
        culprits=ranks,
        where=event.where,
        evidence=(f"rank {event.rank}: {event.error.text}",),
    )
