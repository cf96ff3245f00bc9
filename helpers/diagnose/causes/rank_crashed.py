"""A rank was ended by a signal."""

from __future__ import annotations

from ...model.facts import Verdict
from ...model.findings import RankCrashed
from ...model.wording import last_seen, plural, signal_name, spoken
from ..events import FROM_OUTSIDE
from ..scene import Facts


def find(facts: Facts) -> Verdict | None:
    """The first failure is a rank's death by a signal."""
    event = facts.first
    if event is None or event.by_signal is None or not event.own or event.rank is None:
        return None
    if facts.ended_unseen:
        return None
    name = signal_name(event.by_signal)
    waiting = facts.graph.needing((event.rank,))
    after = f"; {spoken(waiting)} still {plural(waiting, 'waits', 'wait')} for it" if waiting else ""
    return Verdict(
        outcome="hang" if facts.stuck - {event.rank} else "error",
        cause="rank-crashed",
        detail=f"rank {event.rank} was ended by {name}",
        summary=(f"Rank {event.rank} was ended by {name}{last_seen(event.where)}{after}."),
        culprits=(event.rank,),
        where=event.where,
        evidence=(f"rank {event.rank} ended by signal {event.by_signal} ({name})",),
        finding=RankCrashed(signal=name, from_outside=event.by_signal in FROM_OUTSIDE),
    )
