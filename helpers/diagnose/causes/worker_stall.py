"""A DataLoader worker died or is stuck, and its rank waits for it."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.clauses import clauses, grouped, standing, verb
from ...model.facts import ChildView, ErrorView, ProcessView, Verdict
from ...model.findings import WorkerStall
from ...model.waits import DATA_LOADER
from ...model.wording import child_phrase, doing, joined, place, sentence, signal_name, spoken
from ..events import FROM_OUTSIDE, Event
from ..messages import BY_SIGNAL, WORKER_LATE, WORKERS
from ..scene import Facts

UNSEEN = ChildView(ProcessView(0, "dataloader-worker"))
"""A worker of which no file tells: what its rank waits for tells that there is one."""


def find(facts: Facts) -> Verdict | None:
    """The first failure is a worker's end, or a stuck rank waits for a worker that cannot go on."""
    event = facts.first
    if event is not None:
        return _died(facts, event)
    return _stalled(facts)


def _stalled(facts: Facts) -> Verdict | None:
    waiting = {
        rank: child for rank in sorted(facts.graph.core) if (child := _stalled_worker(facts, rank))
    }
    if not waiting:
        return None
    predicates = {}
    for rank, child in waiting.items():
        worker = f"{child_phrase(child)}, which {standing(child.process).singular}"
        predicates[rank] = verb("waits", "wait", f"at {place(facts.where((rank,)))} for {worker}")
    states = {rank: (child_phrase(child), doing(child.process)) for rank, child in waiting.items()}
    return Verdict(
        outcome="hang",
        cause="worker-stall",
        detail=joined(
            [f"{name} of {spoken(who)} is {state}" for (name, state), who in grouped(states).items()]
        ),
        summary=f"{sentence(clauses(predicates))}.",
        culprits=tuple(waiting),
        where=next(iter(waiting.values())).process.where,
        evidence=tuple(
            f"{child_phrase(c)} of rank {r} has not moved for a while: {doing(c.process)}"
            for r, c in waiting.items()
        ),
        finding=WorkerStall("stuck", runs_module_again=facts.runs_module_again),
    )


def _stalled_worker(facts: Facts, rank: int) -> ChildView | None:
    if all(wait.op != DATA_LOADER for wait in facts.waits(rank)):
        return None
    children = facts.graph.ranks[rank].children
    if not children and not facts.snapshot.timed:
        return UNSEEN
    return next((child for child in children if _stalls(child)), None)


def _died(facts: Facts, event: Event) -> Verdict | None:
    if event.rank is None and not event.own:
        return None
    error = event.process.error
    if event.own and error is not None and WORKER_LATE.search(error.message):
        return _timed_out(facts, event)
    sent = _sent_to_all(facts, _workers(facts, event.rank))
    told_signal = _told_signal(error) if event.own else ""
    worker = _lost_worker(facts, event, sent or told_signal)
    if worker is None:
        return None
    name, how = worker
    at = f" at {place(event.where)}" if event.where else ""
    return Verdict(
        outcome="error",
        cause="worker-stall",
        detail=f"{name} of {event.who} died: {how}",
        summary=(
            f"{sentence(name)} of {event.who} died ({how}){at}, and "
            f"{event.who if event.ranks else 'that process'} cannot get its next batch."
        ),
        culprits=event.ranks,
        where=event.where,
        evidence=(f"{name} of {event.who}: {event.text}",),
        finding=WorkerStall(
            "ended", sent, facts.runs_module_again, told_signal, for_memory=told_signal == "SIGKILL"
        ),
    )


def _lost_worker(facts: Facts, event: Event, by: str) -> tuple[str, str] | None:
    """The worker that has ended, and how; `by` is its signal, where one from outside is known."""
    if event.own:
        error = event.process.error
        if error is None or not _tells_of_worker(error, follows=event.consequence):
            return None
        return "a DataLoader worker", f"ended by {by} from outside" if by else "ended"
    children = _workers(facts, event.rank)
    child = next((child for child in children if child.process.pid == event.process.pid), None)
    if child is not None and child.process.kind == "dataloader-worker":
        return child_phrase(child), event.text
    listed = child is not None and _is_listed(facts, child)
    return ("a DataLoader worker", event.text) if listed else None


def _told_signal(error: ErrorView | None) -> str:
    """The signal that has ended a worker, where its rank tells one that comes from outside."""
    match = BY_SIGNAL.search(error.message) if error is not None else None
    return {"Killed": "SIGKILL", "Terminated": "SIGTERM"}.get(match[1], "") if match is not None else ""


def _workers(facts: Facts, rank: int | None) -> tuple[ChildView, ...]:
    """The children of a rank."""
    view = facts.graph.ranks.get(rank) if rank is not None else None
    return view.children if view is not None else ()


def _sent_to_all(facts: Facts, children: Sequence[ChildView]) -> str:
    """The signal by which somebody else has ended all DataLoader workers of a rank, two at least.

    A rank ends those that are left once one has died, and one alone may have sent it to itself.
    """
    workers = [child.process for child in children if child.process.kind == "dataloader-worker"]
    signals = [process.signal for process in workers]
    number = signals[0] if len(signals) > 1 and len({*signals}) == 1 else None
    return signal_name(number) if number in FROM_OUTSIDE and not facts.snapshot.memory_kills else ""


def _is_listed(facts: Facts, child: ChildView) -> bool:
    """True for a child that ended too soon to be known, but which its rank names as a worker."""
    messages = [event.error.message for event in facts.events if event.own and event.error is not None]
    pids = [pid for text in messages for listing in WORKERS.findall(text) for pid in listing.split(", ")]
    return str(child.process.pid) in pids


def _timed_out(facts: Facts, event: Event) -> Verdict:
    """A rank has waited for its worker as long as the `timeout` of its DataLoader allows."""
    workers = [c for c in _workers(facts, event.rank) if c.process.kind == "dataloader-worker"]
    busy = (c for c in workers if not c.process.waits_for_task)
    worker = next((c for c in busy if c.process.where is not None), None)
    name = child_phrase(worker) if worker is not None else "a DataLoader worker"
    where = worker.process.where if worker is not None else event.where
    last = f", last seen at {place(where)}" if worker is not None else ""
    return Verdict(
        outcome="error",
        cause="worker-stall",
        detail=f"{name} of {event.who} was too late: {event.text}",
        summary=(
            f"{sentence(event.who)} gave up waiting at {place(event.where)} for {name}{last}: "
            f"{event.text}."
        ),
        culprits=event.ranks,
        where=where,
        evidence=(f"{event.who}: {event.text}",),
        finding=WorkerStall("late", runs_module_again=facts.runs_module_again),
    )


def _tells_of_worker(error: ErrorView, *, follows: bool) -> bool:
    return "DataLoader worker (pid" in error.message or (follows and error.in_loader)


def _stalls(child: ChildView) -> bool:
    process = child.process
    return process.kind == "dataloader-worker" and process.alive and not process.waits_for_task
