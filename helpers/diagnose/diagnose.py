"""Snapshots -> Verdict, without I/O or a clock: the same history gives the same verdict."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import get_args

from msgspec.structs import replace

from ..model.clauses import Predicate, clauses, grouped, standing, verb
from ..model.facts import (
    STILL,
    Attempt,
    Cause,
    ErrorView,
    RankView,
    Snapshot,
    Verdict,
)
from ..model.wording import abridged, clipped, doing, place, plural, sentence, signal_name, spoken
from .doubt import doubt
from .events import Event, events
from .handled import first_handled, while_handling
from .parting.parting import parting
from .printed import printed
from .scene import Facts

Find = Callable[[Facts], Verdict | None]

CAUSES: dict[Cause, Find] = {
    cause: import_module(f"..causes.{cause.replace('-', '_')}", __name__).find
    for cause in get_args(Cause)
    if cause != "none"
}
"""How each is recognised: `find` of the module that is named as the cause; tried in this order."""

WORTH_TELLING = 3.0
"""Seconds that a rank has waited for others when that is told: at every start some wait for a moment."""

RUNNING = "The job is running."
"""What is said of a job of which there is nothing else to say."""

_SPECIFIC = re.compile(r"(?<![^\s'\"])[^\s'\"]*/[^\s'\"]*|(?<![\w.-])[\w.-]*\d[\w.-]*")
"""What may differ between ranks in one and the same message: paths, and words with a number in them."""

PROOF_SPAN = 0.5
"""Seconds over which every snapshot must lead to the same proof."""


def diagnose(history: Sequence[Snapshot], *, patience: float = 30.0, final: bool = False) -> Verdict:
    """Say what the newest snapshot of a history means.

    Args:
        history: snapshots in the order of time, the newest last; a few seconds suffice.
        patience: seconds after which a rank that uses no CPU and does not leave its line is suspect.
        final: True when there will be no further snapshot, so a suspicion becomes the outcome.

    Returns:
        The verdict; `hang` and `error` with `proved` True follow from what was seen alone.

    Raises:
        ValueError: when the history is empty.
    """
    if not history:
        raise ValueError("diagnose needs at least one snapshot")
    snapshot = history[-1]
    facts = Facts(snapshot)
    proof = _find(facts)
    if proof is not None and (proof.outcome != "hang" or _lasting(history, proof)):
        return _completed(facts, proof)
    assumed = Facts(snapshot, max(patience, STILL))
    suspicion = _suspect(assumed)
    hangs = suspicion is not None and suspicion.outcome == "hang"
    if final and suspicion is not None and hangs:
        return _doubted(_completed(assumed, suspicion), assumed, facts)
    if snapshot.job.exit_code == 0:
        evidence = (*_earlier(snapshot), *_limit(snapshot))
        return Verdict("ok", "none", summary=_ended_well(facts), evidence=evidence)
    if final and suspicion is not None:
        return _completed(assumed, suspicion)
    waiting = _live_line(facts)
    return Verdict(
        outcome="running",
        cause="none",
        proved=False,
        summary=waiting or (_resting(facts) if final else None) or RUNNING,
        evidence=snapshot.warned,
        suspicion=suspicion.summary if suspicion is not None and hangs else waiting,
    )


def _ended_well(facts: Facts) -> str:
    ends = {
        event.rank: verb("was", "were", f"ended by {signal_name(event.by_signal)}")
        for event in facts.dismissed
        if event.rank is not None and event.by_signal is not None
    }
    how = f"{clauses(ends)}, and the command went on" if ends else "every rank came to its end"
    return f"The job ended well: {how}."


def _doubted(verdict: Verdict, assumed: Facts, facts: Facts) -> Verdict:
    """A verdict that rests on patience, with what is not known; an error is none the less one."""
    if verdict.outcome != "hang":
        return verdict
    return replace(verdict, summary=clipped(f"{doubt(assumed, facts.graph)} {verdict.summary}"))


def _find(facts: Facts) -> Verdict | None:
    """The answer of the first cause that has one.

    Where a launcher has started failed ranks again and they have failed again, the first failure of all
    is that of the first attempt.
    """
    verdicts = (find(facts) for find in CAUSES.values())
    verdict = next((verdict for verdict in verdicts if verdict is not None), None)
    if verdict is None or facts.first is None or not facts.snapshot.earlier:
        return verdict
    return _of_attempt(facts, facts.snapshot.earlier[0]) or verdict


def _of_attempt(facts: Facts, attempt: Attempt) -> Verdict | None:
    """The verdict on an attempt before the last one, which has failed, too."""
    then = Facts(replace(facts.snapshot, ranks=attempt.ranks, launchers=(), earlier=()))
    verdict, last = _find(then), facts.first
    if verdict is None or last is None:
        return None
    error = then.first.error if then.first is not None else None
    raised = (event for event in facts.events if event.error is not None)
    new = [f"{event.text} ({_who(event)})" for event in raised if not _same(event.error, error)]
    later = f"attempt {facts.snapshot.job.attempt}, the last, then failed: {_who(last)}: {last.text}"
    return replace(
        verdict,
        summary=f"In attempt {attempt.number}: {verdict.summary} {sentence(later)}.",
        masked=tuple(dict.fromkeys((*_masked(then, verdict), *new))),
        evidence=(*verdict.evidence, later),
    )


def _lasting(history: Sequence[Snapshot], verdict: Verdict) -> bool:
    """True when the snapshots of the last `PROOF_SPAN` seconds all prove the same."""
    newest = history[-1].time
    for snapshot in reversed(history[:-1]):
        earlier = _find(Facts(snapshot))
        if earlier is None or (earlier.cause, earlier.culprits) != (verdict.cause, verdict.culprits):
            return False
        if newest - snapshot.time >= PROOF_SPAN:
            return True
    return False


def _suspect(facts: Facts) -> Verdict | None:
    """The verdict under the assumption that what has not moved for `patience` seconds never will.

    Ranks that are stuck although none is given up have not been stuck long enough for a proof. A
    verdict of `running` names ranks at work for which others wait.
    """
    if facts.stuck and not facts.graph.given_up:
        return None
    return _find(facts)


def running_summary(snapshot: Snapshot) -> str:
    """What is said of a job that runs: who waits for whom, else what those do that rest."""
    facts = Facts(snapshot)
    return _live_line(facts) or _resting(facts) or RUNNING


def _live_line(facts: Facts) -> str | None:
    """Which ranks wait now, and for which: `Rank 0 waits for rank 1, which is at ...`."""
    graph = facts.graph
    peers = {
        rank: graph.waited_for[rank]
        for rank, process in graph.alive.items()
        if process.blocked and process.unmoved >= WORTH_TELLING and graph.waited_for[rank]
    }
    if not peers:
        return None
    names = {awaited: spoken(sorted(awaited)) for awaited in {*peers.values()}}
    waits = clauses({r: verb("waits", "wait", f"for {names[awaited]}") for r, awaited in peers.items()})
    at = {peer: _is_at(graph.ranks.get(peer)) for peer in frozenset[int]().union(*names)}
    alike = len(names) == 1 and len({*at.values()}) == 1
    which = f", which {plural(at, *next(iter(at.values())))}" if alike else f": {clauses(at)}"
    return f"{sentence(waits)}{which}."


def _resting(facts: Facts) -> str | None:
    """What the ranks that rest or wait do, in a job in which nobody waits for another rank."""
    resting = {
        rank: process
        for rank, process in facts.graph.alive.items()
        if process.where is not None
        and (process.still if process.blocking else process.unmoved) >= STILL
    }
    predicates = {}
    for state, ranks in grouped({rank: standing(process) for rank, process in resting.items()}).items():
        ends = [resting[rank].ends or 0.0 for rank in ranks]
        remaining = min(ends) - facts.snapshot.time
        longer = f" for another {remaining:.0f} s" if remaining >= STILL else ""
        predicates.update(
            dict.fromkeys(ranks, Predicate(state.singular + longer, state.plural + longer))
        )
    return f"{RUNNING[:-1]}: {clauses(predicates)}." if predicates else None


def _is_at(view: RankView | None) -> Predicate:
    """`is at prep.py:12 (asleep)`, `is importing`, `has ended`, `is not there yet`."""
    if view is not None and view.state == "unseen":
        return verb("is", "are", "not seen from here")
    process = view.process if view is not None else None
    if process is None:
        return verb("is", "are", "not there yet")
    if process.where is not None:
        return verb("is", "are", f"at {place(process.where)} ({doing(process)})")
    return verb("is", "are", doing(process)) if process.alive else verb("has", "have", "ended")


def _completed(facts: Facts, verdict: Verdict) -> Verdict:
    """What a cause has found, completed with all that is the same for every cause."""
    handled = first_handled(facts, verdict)
    if handled is not None:
        verdict = while_handling(verdict, handled)
    command_ended = facts.snapshot.job.ended is not None
    raised = any(event.error is not None for event in facts.events)
    failed = raised or (command_ended and bool(facts.snapshot.job.exit_code))
    return replace(
        verdict,
        outcome="error" if failed else verdict.outcome,
        proved=verdict.proved and facts.patience == math.inf and verdict.outcome != "running",
        summary=clipped(verdict.summary),
        detail=clipped(verdict.detail),
        masked=verdict.masked or _masked(facts, verdict),
        evidence=(
            *abridged([clipped(entry) for entry in verdict.evidence]),
            *_earlier(facts.snapshot),
            *_limit(facts.snapshot),
            *facts.snapshot.warned,
        ),
        since=_since(facts, verdict),
        parting=parting(facts, verdict),
        handled=handled,
        printed=printed(facts.snapshot),
    )


def _earlier(snapshot: Snapshot) -> tuple[str, ...]:
    """The first failure of each attempt after which the launcher has started all ranks again."""
    lines = []
    for attempt in snapshot.earlier:
        failed = events(replace(snapshot, ranks=attempt.ranks, launchers=()))
        if failed:
            first = failed[0]
            at = f" at {place(first.where)}" if first.where else ""
            lines.append(f"attempt {attempt.number} failed before: {first.who}: {first.text}{at}")
    return tuple(lines)


def _limit(snapshot: Snapshot) -> tuple[str, ...]:
    """The limit on memory under which the job ran, and who enforced it."""
    limit = snapshot.limit
    if limit is None:
        return ()
    return (f"the job might use {limit.megabytes} MB of memory; enforced by {limit.enforcer}",)


def _masked(facts: Facts, verdict: Verdict) -> tuple[str, ...]:
    """The exceptions that follow from the first event, and those that hide another on the way out."""
    first = facts.first
    if first is None:
        return facts.snapshot.masked
    primary = first.error if verdict.cause == "error" or not first.consequence else None
    texts = list(primary.masked) if primary is not None else []
    for event in facts.events:
        error = event.error
        if error is None or error is primary or (error is first.error and not facts.snapshot.timed):
            continue
        relayed = event.rank is None and not event.own and f"{error.text} (rank " in " ".join(texts)
        if not relayed and not _same(error, primary):
            texts.append(f"{error.text} ({_who(event)})")
        texts += error.masked
    return tuple(dict.fromkeys((*texts, *facts.snapshot.masked)))


def _who(event: Event) -> str:
    return event.who if event.own or event.rank is not None else "launcher"


def _same(first: ErrorView | None, second: ErrorView | None) -> bool:
    """True for the same exception on two ranks, but for numbers, addresses and names of files in it."""
    if first is None or second is None or first.type != second.type:
        return False
    return _SPECIFIC.sub("#", first.message) == _SPECIFIC.sub("#", second.message)


def _since(facts: Facts, verdict: Verdict) -> float | None:
    """When the stall began: the time from which the newest of the waiting ranks has not moved."""
    if verdict.outcome != "hang":
        return None
    unmoved = [process.unmoved for process in facts.processes(sorted(facts.stuck))]
    return max(0.0, facts.snapshot.time - min(unmoved)) if unmoved else None
