"""A rank could not write, since no space is left on the device."""

from __future__ import annotations

from ...model.facts import Verdict
from ...model.findings import Finding
from ...model.wording import place, sentence, spoken
from ..messages import NO_SPACE
from ..scene import Facts


class DiskFull(Finding, frozen=True):
    """No space is left; `of_several` is True where several ranks have found none."""

    kind = "disk-full"
    of_several: bool = False


def find(facts: Facts) -> Verdict | None:
    """The first failure is the kernel's refusal to write."""
    event = facts.first
    if event is None or event.error is None or not NO_SPACE.search(event.error.message):
        return None
    ranks = tuple(facts.saying(NO_SPACE))
    return Verdict(
        outcome="error",
        cause="disk-full",
        detail=f"{spoken(ranks)}: {event.error.text}",
        summary=f"{sentence(spoken(ranks))} found no space on the device at {place(event.where)}.",
        culprits=ranks,
        where=event.where,
        evidence=(f"rank {event.rank}: {event.error.text}",),
        finding=DiskFull(of_several=len(ranks) > 1),
    )
