"""A rank is alive but never arrives where the others wait, or did not before they gave up."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ...model.clauses import Predicate, clauses, grouped, same, standing, verb
from ...model.facts import UNTOLD, ProcessView, RankView, Verdict
from ...model.findings import Missing, WaitsFor
from ...model.frames import Frame
from ...model.waits import (
    Communication,
    ForRanks,
    InStore,
    OnCondition,
    OnInput,
    OnIO,
    OnLock,
    OnThread,
    Wait,
)
from ...model.wording import (
    call,
    doing,
    functions,
    group_name,
    last_seen,
    operation,
    place,
    plural,
    sentence,
    spoken,
)
from ...program.wakers import awaited
from ..events import Event
from ..messages import NOT_PASSED
from ..scene import Facts
from ..thread_errors import thread_errors


def find(facts: Facts) -> Verdict | None:
    """A stuck rank is not in a call that the others could join.

    Or no rank is stuck, but others have waited for a rank at work for longer than patience. Or the first
    failure is that ranks have waited for another until their timeout.
    """
    if facts.first is not None:
        return _gave_up(facts, facts.first)
    if facts.snapshot.absent and facts.patience < math.inf:
        return _from_library(facts.snapshot.absent)
    if facts.stuck:
        absent = sorted(rank for rank in facts.graph.core if _is_elsewhere(facts, rank))
    else:
        absent = _overdue(facts)
    return _verdict(facts, absent) if absent else None


def _from_library(absent: tuple[int, ...]) -> Verdict:
    """A library tells which ranks the others wait for, and no more is known of any."""
    waits = f"the other ranks wait for {spoken(absent)}"
    return Verdict(
        outcome="hang",
        cause="missing-rank",
        detail=waits,
        summary=f"{sentence(waits)}, which {plural(absent, 'has', 'have')} not made their call.",
        culprits=absent,
        finding=Missing(ranks=absent),
    )


def _gave_up(facts: Facts, first: Event) -> Verdict | None:
    """The first failure is a rank that has waited for others until its own timeout."""
    if first.rank is None or not (first.consequence and first.timeout):
        return None
    failed = {event.rank for event in facts.events if event.error is not None}
    listed = _unarrived(first)
    absent = listed or tuple(
        rank
        for rank, view in sorted(facts.graph.ranks.items())
        if rank not in failed and view.process is not None and not _waited(view.process)
    )
    if not absent:
        return None
    stay = clauses({rank: _was_at(facts, rank) for rank in absent})
    at = f" at {place(first.where)}" if first.where else ""
    return Verdict(
        outcome="error",
        cause="missing-rank",
        detail=f"{stay} when {spoken((first.rank,))} gave up waiting",
        summary=f"{sentence(stay)} when {spoken((first.rank,))} gave up waiting{at}: {first.text}.",
        culprits=absent,
        where=facts.where(absent),
        evidence=(f"{spoken((first.rank,))}: {first.text}",),
        finding=Missing(ranks=absent, works=True, needed_by=(first.rank,)),
    )


def _was_at(facts: Facts, rank: int) -> Predicate:
    where = facts.where((rank,))
    if where is None:
        return same("had not come")
    return verb("was", "were", f"still at {place(where)}")


def _unarrived(event: Event) -> tuple[int, ...]:
    """The ranks that a barrier says have not come."""
    match = NOT_PASSED.search(event.error.message) if event.error is not None else None
    return tuple(int(number) for number in re.findall(r"\d+", match[1] or match[2])) if match else ()


def _waited(process: ProcessView) -> bool:
    """True for a rank that waited for others itself, or that came to its end."""
    return (
        process.ended_in_call
        or bool(process.blocking)
        or process.interpreter_finished
        or process.exit_code == 0
    )


def _is_elsewhere(facts: Facts, rank: int) -> bool:
    """True for a rank that is asleep or stopped, say, or that waits for something else than ranks."""
    waits = facts.waits(rank)
    elsewhere = not waits or any(not isinstance(wait, ForRanks) for wait in waits)
    process = facts.graph.ranks[rank].process
    if not elsewhere or process is None or not process.visible:
        return False
    shows_why = waits or process.beacon or process.asleep or process.state == "stopped"
    alone = len(facts.graph.ranks) == 1
    return bool(shows_why) or alone or rank in facts.graph.awaited


def _is_untraced(process: ProcessView | None) -> bool:
    """True for a rank of which only what it has issued is known, not where it is."""
    return process is not None and not process.stack and process.recorded


def _overdue(facts: Facts) -> list[int]:
    """The ranks at work for which others have waited longer than patience."""
    alive = facts.graph.alive
    long = [rank for rank, process in alive.items() if process.unmoved >= facts.patience]
    overdue = facts.graph.awaited_by(long) & alive.keys()
    return sorted(peer for peer in overdue if not facts.graph.waited_for[peer])


def _verdict(facts: Facts, ranks: Sequence[int]) -> Verdict:
    """The verdict on `ranks` that are elsewhere than where the others wait."""
    peers = facts.graph.waited_for_among(ranks)
    waiting = {rank: peers[rank] for rank in sorted(peers.keys() & facts.alive.keys() - {*ranks})}
    states = {rank: _state(facts.graph.ranks[rank]) for rank in ranks}
    stay = clauses(states)
    return Verdict(
        outcome="hang" if facts.stuck else "running",
        cause="missing-rank",
        detail=stay,
        summary=f"{sentence(stay)}{_awaited(facts, states, waiting)}.",
        culprits=tuple(ranks),
        where=facts.where(ranks),
        evidence=(
            *(_evidence(facts, rank) for rank in (*ranks, *waiting)),
            *(text for rank in ranks for text in _failed(facts, rank)),
        ),
        finding=_finding(facts, ranks, waiting),
    )


def _finding(facts: Facts, ranks: Sequence[int], waiting: Mapping[int, frozenset[int]]) -> Missing:
    """What keeps the ranks, in fields."""
    processes = facts.processes(tuple(ranks))
    blocking = [wait for process in processes for wait in process.blocking]
    tested, changed = _ended_by(processes, blocking)
    calls = [_call_for(facts, rank, needed) for rank, needed in waiting.items()]
    return Missing(
        ranks=tuple(ranks),
        waits_for=_waits_for(facts, ranks, blocking),
        works=not blocking and not any(process.state == "stopped" for process in processes),
        tested=tested,
        changed=functions(changed),
        lost=next((text for rank in ranks for text in _failed(facts, rank)), ""),
        met=_met(facts, ranks, [*waiting]),
        needed_by=tuple(waiting),
        awaited=next((call(wait) for wait in calls if wait is not None), ""),
    )


def _ended_by(processes: Sequence[ProcessView], blocking: Sequence[Wait]) -> tuple[str, Sequence[Frame]]:
    """What the first of some ranks tests, or its wait for another thread, with what may end that."""
    condition = next((wait for wait in blocking if isinstance(wait, OnCondition)), None)
    if condition is not None:
        return condition.op, condition.changed_at
    at = next((process.where for process in processes if process.where is not None), None)
    if at is None or not any(isinstance(wait, OnThread) for wait in blocking):
        return "", ()
    wait = awaited(at.text, at.line)
    if wait is None:
        return "", ()
    return wait.call, [replace(at, line=waker.line, function=waker.function) for waker in wait.wakers]


def _waits_for(facts: Facts, ranks: Sequence[int], blocking: Sequence[Wait]) -> WaitsFor:
    """What the first of the ranks waits for that waits."""
    processes = facts.processes(tuple(ranks))
    if any(process.state == "stopped" and not process.stopped_for_memory for process in processes):
        return "signal"
    writing = [child for rank in ranks for child in _writing(facts.graph.ranks[rank])]
    if writing:
        return "queue" if any("multiprocessing" in f.file for f in writing[0].stack) else "pipe"
    return next((kind for kind in map(_kind, blocking) if kind != "other"), "other" if blocking else "")


def _writing(view: RankView) -> Iterator[ProcessView]:
    """The children of a rank that cannot write, since nobody reads."""
    for child in view.children:
        if any(isinstance(wait, OnIO) and wait.op == "write" for wait in child.process.waits):
            yield child.process


def _kind(wait: Wait) -> WaitsFor:
    """What keeps a rank, by one of its waits."""
    match wait:
        case OnCondition():
            return "condition"
        case OnInput():
            return "input"
        case InStore():
            return "key"
        case OnLock(path=None) | OnThread(circular=True):
            return "lock"
        case OnThread():
            return "thread"
    return "other"


def _met(facts: Facts, ranks: Sequence[int], waiting: Sequence[int]) -> int:
    """How many calls of a group the ranks have completed together with those that wait for them."""
    done = [
        {(call.group, call.seq) for call in process.collectives if call.done}
        for process in facts.processes((*ranks, *waiting))
    ]
    newest = max((seq for _, seq in set.intersection(*done)), default=0) if done else 0
    return newest if waiting else 0


def _state(view: RankView) -> Predicate:
    """What a rank does instead of coming."""
    if _is_untraced(view.process):
        return verb("has", "have", f"issued nothing{_last(view)}")
    return standing(view.process, _child_is(view))


def _awaited(
    facts: Facts, states: Mapping[int, Predicate], waiting: Mapping[int, frozenset[int]]
) -> str:
    """Where others wait for the ranks, each for those that it needs.

    Args:
        waiting: rank -> those of the ranks for which it waits.
    """
    calls = {rank: _call_for(facts, rank, needed) for rank, needed in waiting.items()}
    needs = grouped({rank: (waiting[rank], wait and operation(wait)) for rank, wait in calls.items()})
    if not needs:
        return ""
    (needed, to), *more = needs
    if more or len(needed) < len(states):
        texts = {ranks[0]: _needs(needed, calls[ranks[0]]) for (needed, _), ranks in needs.items()}
        return f", and {clauses({r: texts[ranks[0]] for ranks in needs.values() for r in ranks})}"
    need = f"{spoken([*waiting])} {plural(waiting, 'is', 'are')} waiting"
    has, them = plural(states, ("has", "it"), ("have", "them"))
    if to is None:
        return f", and {need} for {them}"
    then = " and" if len({*states.values()}) == 1 else ", and they"
    return f"{then} {has} not reached {to}, where {need}"


def _call_for(facts: Facts, rank: int, needed: frozenset[int]) -> Communication | None:
    """The call in which a rank waits for one of `needed`."""
    calls = (wait for wait in facts.waits(rank) if isinstance(wait, Communication))
    return next((c for c in calls if not facts.graph.needs.absent(rank, c).isdisjoint(needed)), None)


def _needs(needed: frozenset[int], wait: Communication | None) -> Predicate:
    inside = f" in {call(wait)}" if wait is not None else ""
    return verb("waits", "wait", f"for {spoken(sorted(needed))}{inside}")


def _last(view: RankView) -> str:
    """` after all_reduce #7 of the default group`: the newest that a rank has issued, if any."""
    newest = view.process.collectives[-1:] if view.process is not None else ()
    calls = ((f"{entry.op} #{entry.seq}".strip(), group_name(entry.group)) for entry in newest)
    return "".join(f" after {call} of {group}" for call, group in calls)


def _failed(facts: Facts, rank: int) -> Iterator[str]:
    """Its processes and threads that have failed: a rank may wait for what they should have done."""
    for process in facts.processes((rank,)):
        if any(isinstance(wait, OnThread) for wait in process.blocking):
            errors = [*thread_errors(dict(facts.snapshot.output).get(rank, ()))]
            yield from (f"a thread of rank {rank} has ended by {error}" for error in errors)
            for name, at in () if errors else process.ended_threads:
                yield f"the thread {name} of rank {rank} has ended{last_seen(at)}"
    for child in facts.graph.ranks[rank].children:
        process = child.process
        if process.signal is not None or process.exit_code:
            how = f"signal {process.signal}" if process.signal else f"exit code {process.exit_code}"
            yield f"a process of rank {rank} has ended with {how}{last_seen(process.where)}"


def _child_is(view: RankView) -> str:
    """`, which is ...` for a rank that waits for a child whose line is known."""
    if view.process is None or not view.process.waits_for_child:
        return ""
    children = [child.process for child in view.children if child.process.alive]
    child = next((process for process in children if process.where is not None), None)
    return f", which is {doing(child)} at {place(child.where)}" if child is not None else ""


def _evidence(facts: Facts, rank: int) -> str:
    view = facts.graph.ranks[rank]
    process = view.process
    timed = process is not None and process.unmoved < UNTOLD and not _is_untraced(process)
    still = f", unmoved for {process.unmoved:.0f} s" if process is not None and timed else ""
    return f"rank {rank} {_state(view).singular}{still}"
