"""A rank was ended by a signal."""

from __future__ import annotations

from signal import SIGBUS

from ...model.facts import ErrorView, Verdict
from ...model.findings import RankCrashed
from ...model.wording import last_seen, plural, sentence, signal_name, spoken
from ..events import FROM_OUTSIDE
from ..messages import lost_worker
from ..scene import Facts


def find(facts: Facts) -> Verdict | None:
    """The first failure is a rank's death by a signal."""
    event = facts.first
    if event is not None and event.error is not None and lost_worker(event.error):
        return _lost(event.error)
    if event is None or event.by_signal is None or not event.own:
        return None
    if facts.ended_unseen:
        return None
    name = signal_name(event.by_signal)
    waiting = facts.graph.needing(event.ranks)
    after = f"; {spoken(waiting)} still {plural(waiting, 'waits', 'wait')} for it" if waiting else ""
    return Verdict(
        outcome="hang" if facts.stuck - {*event.ranks} else "error",
        cause="rank-crashed",
        detail=f"{event.who} was ended by {name}",
        summary=f"{sentence(event.who)} was ended by {name}{last_seen(event.where)}{after}.",
        culprits=event.ranks,
        where=event.where,
        evidence=(f"{event.who} ended by signal {event.by_signal} ({name})",),
        finding=RankCrashed(
            signal=name,
            from_outside=event.by_signal in FROM_OUTSIDE,
            bus_error=event.by_signal == SIGBUS,
            with_stack=bool(event.process.stack) and not facts.snapshot.timed,
        ),
    )


def _lost(error: ErrorView) -> Verdict:
    """Another process tells of a worker that has crashed, and not how."""
    detail = f"a worker process has died ({error.message.removesuffix('.')})"
    return Verdict(
        outcome="error",
        cause="rank-crashed",
        detail=detail,
        summary=f"{sentence(detail)}; nothing that was read tells what has ended it.",
        evidence=(error.text,),
        finding=RankCrashed(),
    )
