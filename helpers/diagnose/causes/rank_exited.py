"""A rank ended without an exception while others need it."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.clauses import clauses, same, verb
from ...model.facts import ProcessView, RankView, Verdict
from ...model.findings import RankExited
from ...model.frames import Frame
from ...model.waits import InStore
from ...model.wording import END_UNSEEN, last_seen, place, plural, sentence, spoken, stack_of
from ...program.blocks import statements_around
from ...program.syntax import Loop
from ..events import Event
from ..scene import Facts

SEEN_LATE = 1.0
"""Seconds by which an end may be seen later than it was; an exception tells its own time."""


def find(facts: Facts) -> Verdict | None:
    """A rank left without an exception; others failed because of that, or wait for it."""
    event = facts.first
    if facts.ended_unseen:
        return None
    exited = sorted(rank for rank, view in facts.graph.ranks.items() if _is_exited(view))
    if event is not None and not event.consequence:
        explained = event.error is not None or event.by_signal is not None
        if explained or event.rank is None or not event.own:
            return None
        return _verdict(facts, _dead_before(facts, event, exited) or (event.rank,))
    early = tuple(rank for rank in exited if _before(facts, rank))
    awaited = facts.graph.awaited_by(facts.stuck)
    needed = tuple(rank for rank in exited if rank in awaited or _only_they_could_have_set_it(facts))
    culprits = early if event is not None else needed or _left_alone(facts)
    return _verdict(facts, culprits) if culprits else None


def _left_alone(facts: Facts) -> tuple[int, ...]:
    """The ranks of which files tell that they have ended, and not how."""
    if facts.snapshot.timed or facts.stuck:
        return ()
    return tuple(rank for rank, view in facts.dead.items() if view.process and view.process.end_unseen)


def _is_exited(view: RankView) -> bool:
    """True for a rank that exited without an exception or a signal."""
    process = view.process
    if process is None:
        return view.state == "exited"
    orderly = process.signal is None or process.interpreter_finished
    return not process.alive and process.error is None and orderly


def _dead_before(facts: Facts, event: Event, exited: Sequence[int]) -> tuple[int, ...]:
    """The ranks that had left before one ended in a call, of which nothing tells why it ended.

    Without a beacon an exception that it has raised is not seen.
    """
    if event.process.beacon or not event.process.ended_in_call:
        return ()
    ends = {rank: process.ended for rank in exited if (process := facts.graph.ranks[rank].process)}
    return tuple(rank for rank, end in ends.items() if end is not None and end < event.time)


def _how(process: ProcessView | None) -> str:
    if process is None:
        return "ended before this look"
    if process.exit_code is None and not process.beacon:
        return END_UNSEEN
    code = process.exit_code
    return f"ended with exit code {code}" if code else "ended without an exception"


def _only_they_could_have_set_it(facts: Facts) -> bool:
    """True when the last rank waits for a key: whoever should have set it has gone."""
    return len(facts.alive) == 1 and any(
        isinstance(wait, InStore) for rank in facts.stuck for wait in facts.waits(rank)
    )


def _before(facts: Facts, rank: int) -> bool:
    """True when the rank had exited before the first failure, which says that a process has.

    A rank closes its connections some time before its process ends: an error that speaks of a closed
    connection needs no comparison of times, one that speaks of a timeout does. A rank that the failed
    call did not need has nothing to do with it.
    """
    view = facts.graph.ranks[rank].process
    first = facts.first
    if view is None or view.ended is None or first is None:
        return False
    if first.error is not None and first.error.needed and rank not in first.error.needed:
        return False
    return first.own and (not first.timeout or view.ended <= first.time + SEEN_LATE)


def _verdict(facts: Facts, exited: tuple[int, ...]) -> Verdict:
    waiting = facts.graph.needing(exited)
    first = facts.first
    how = {rank: same(_how(facts.graph.ranks[rank].process)) for rank in exited}
    where = facts.where(exited[:1])
    them = plural(exited, "it", "them")
    failed = () if first is None or first.rank is None or first.rank in exited else (first.rank,)
    needed_by = tuple(waiting) or failed
    after = ""
    if waiting:
        after = f" while {spoken(waiting)} still {plural(waiting, 'needs', 'need')} {them}"
    elif first is not None and first.rank is not None and first.rank not in exited:
        after = (
            f", and {spoken((first.rank,))}, which still needed {them}, failed at {place(first.where)}"
        )
    return Verdict(
        outcome="hang" if facts.stuck and first is None else "error",
        cause="rank-exited",
        detail=clauses(how),
        summary=f"{sentence(clauses(how))}{after}{_last_seen(facts, exited)}.",
        culprits=_odd(facts, exited),
        where=where or _needed_at(facts, waiting),
        evidence=tuple(f"rank {rank} {predicate.singular}" for rank, predicate in how.items()),
        finding=RankExited(exited, needed_by, _needed_at(facts, waiting), at_end=_at_end(facts, exited)),
    )


def _at_end(facts: Facts, exited: tuple[int, ...]) -> bool:
    """True where the ranks came to the end of the program, and no other was in a loop of it."""
    through = all(p.exit_code == 0 and p.where is None for p in facts.processes(exited))
    stacks = [stack_of(process) for process in facts.processes(tuple(facts.graph.ranks))]
    frames = [frame for stack in stacks for frame in stack if frame.user]
    steps = [step for frame in frames for step in statements_around(frame)]
    return through and not any(isinstance(step.node, Loop) for step in steps)


def _last_seen(facts: Facts, exited: Sequence[int]) -> str:
    """`; it was last seen at train.py:41`; each rank with its own line, where these differ."""
    lines = {rank: facts.where((rank,)) for rank in exited}
    if len({*lines.values()}) == 1:
        return last_seen(lines[exited[0]], exited)
    places = {rank: place(line) for rank, line in lines.items() if line is not None}
    listed = clauses({rank: verb("was", "were", f"last seen at {at}") for rank, at in places.items()})
    return f"; {listed}" if listed else ""


def _odd(facts: Facts, exited: tuple[int, ...]) -> tuple[int, ...]:
    """The ranks that exited; if most reached the end of their program, the others.

    A rank that exits at a line of its own, by `sys.exit` or `os._exit`, has not reached the end.
    """
    at_end = all(p.exit_code == 0 and p.where is None for p in facts.processes(exited))
    complete = len(facts.processes(exited)) == len(exited)
    rest = tuple(sorted(set(facts.graph.ranks) - set(exited)))
    return rest if rest and complete and at_end and len(exited) > len(rest) else exited


def _needed_at(facts: Facts, waiting: Sequence[int]) -> Frame | None:
    """The line where the first of the others needed a rank whose own last line is not known."""
    if waiting:
        view = facts.graph.ranks[waiting[0]].process
        return view.where if view else None
    return facts.first.where if facts.first is not None else None
