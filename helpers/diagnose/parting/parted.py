"""From what is known of all ranks to the statement at which they parted. No I/O."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from ...model.clauses import grouped
from ...model.frames import Frame
from ...model.parting import Guard, Kind, Parting
from ...program.blocks import function_of, label_of_part, parts, path
from ...program.condition import truth
from ...program.flow import AFTER, RAISED, Choice, asked_by
from ...program.hooks import Telling, callees, exits, hooks
from ...program.identity import of_rank
from ...program.switches import switches
from .contexts import Contexts, Stack, users_of
from .decision import EXITED, RETURNED, WENT_ON, Decision
from .divergence import Divergence, Divergences
from .explanation import TooManyError
from .omission import Condition, omissions
from .told import guard, source_of, told
from .trace import Trace, divergences

MOST_GUARDS = 3
"""Statements that are told where no single one is known to have decided."""


def parted(
    traces: Mapping[int, Trace],
    odd: Sequence[int],
    waited_for: Mapping[int, Collection[int]] | None = None,
    *,
    mismatch: bool = False,
) -> Parting | None:
    """The statement at which ranks have parted; None where it cannot be told.

    Args:
        traces: what is known of each rank.
        odd: the ranks that are not where they should be, if it is known which these are.
        waited_for: rank -> the ranks for which it waits, where that is known.
        mismatch: True where their calls are known not to match: none of them is only further.
    """
    traces = _aligned(traces)
    first_known = max((trace.first for trace in traces.values()), default=1)
    classes = sorted(
        grouped({rank: trace.key(first_known) for rank, trace in traces.items()}).values(),
        key=lambda ranks: (-len(ranks), ranks),
    )
    if len(classes) < 2:
        return None
    apart = [ranks for ranks in classes if set(odd) & set(ranks)] or classes[-1:]
    first = apart[0]
    others = [*apart[1:], *(ranks for ranks in classes if ranks not in apart)]
    most = max(
        others,
        key=lambda ranks: (
            _nearness(first, ranks, waited_for or {}),
            _together(traces[first[0]].stack, traces[ranks[0]].stack),
        ),
    )
    pair = {ranks[0]: traces[ranks[0]] for ranks in (first, most)}
    try:
        found = divergences(*pair.values())
    except TooManyError:
        found = None
    divergence = found.decision if found is not None else None
    decided = divergence is not None and divergence.decided
    if mismatch and not decided and (switched := _switched(pair, first)):
        return Parting(guards=switched)
    if divergence is None:
        return _undecided(found, pair, first) or (_omitted(pair, first) if mismatch else None)
    decision, labels = _decision(divergence, pair)
    both = zip((first, most), divergence.kept, strict=True)
    decision = replace(decision, kept={rank: kept for ranks, kept in both for rank in ranks})
    stacks = {rank: trace.stack for rank, trace in traces.items()}
    if divergence.reverse:
        return told(decision, stacks, {})
    branches: dict[str, list[int]] = {}
    inside = sorted((first, most), key=lambda ranks: labels[ranks[0]] in (AFTER, RETURNED))
    for ranks in (*inside, *(ranks for ranks in classes if ranks not in inside)):
        way = labels.get(ranks[0]) or _way(decision, traces[ranks[0]].stack)
        if way is None and set(odd) & set(ranks):
            return None
        if way is not None:
            branches.setdefault(way, []).extend(ranks)
    if len(branches) > 1:
        return told(decision, stacks, branches)
    # Both are in a loop that one has left: they go through other things, or in another order.
    return told(decision, stacks, {}) if divergence.choice.kind in ("for", "while") else None


def apart_by(condition: Divergence, pair: Mapping[int, Trace], traces: Mapping[int, Trace]) -> Parting:
    """How a condition is told that each of two ranks decides by its number."""
    decision, labels = _decision(condition, pair)
    kept = dict(zip(pair, condition.kept, strict=True))
    stacks = {rank: trace.stack for rank, trace in traces.items()}
    return told(replace(decision, kept=kept), stacks, {labels[rank]: [rank] for rank in pair})


def _undecided(
    found: Divergences | None, pair: Mapping[int, Trace], odd: Sequence[int]
) -> Parting | None:
    """What may have decided, where that is not known; what was told to a library, where that decided."""
    if found is None or not found.guards:
        if not _in_library(*(trace.stack for trace in pair.values())):
            return None
        frames = {frame.file: frame for trace in pair.values() for frame in trace.stack if frame.user}
        calls = frozenset[str]().union(*(callees(frame.text) for frame in frames.values()))
        told_it = [(frame, one) for frame in frames.values() for one in hooks(frame.text, calls)]
        told_it = [(frame, one) for frame, one in told_it if _by_rank(frame, one, [*pair])] or told_it
        guards = [
            _guard(frame, one, odd) for frame, one in told_it if found is None or not found.together
        ]
        if len(guards) == 1:
            return Parting("if", guards[0].where, guards[0].source)
        return Parting(guards=tuple(guards)) if 0 < len(guards) <= MOST_GUARDS else None
    guards = []
    for divergence in found.guards:
        guards += [_guard(divergence.context.frame, one, odd) for one in divergence.exits]
        guards.append(guard(_decision(divergence, pair)[0], odd))
    return Parting(guards=tuple(guards[:MOST_GUARDS]))


def _by_rank(frame: Frame, telling: Telling, ranks: Sequence[int]) -> bool:
    """True for a condition that the numbers of ranks answer differently."""
    test = telling.statement.test
    return len({truth(test, of_rank(test, rank, frame.text)) for rank in ranks} - {None}) > 1


def _switched(pair: Mapping[int, Trace], odd: Sequence[int]) -> tuple[Guard, ...]:
    """What decides whether a library communicates where a rank is in a call of it, if that is little."""
    found: dict[tuple[str, int], Guard] = {}
    for trace in pair.values():
        frames = users_of(trace.stack)[-1:] if trace.stack and not trace.stack[-1].user else ()
        for frame in frames:
            function = function_of(frame)
            for chosen in switches(function, frame.line, frame.text) if function is not None else ():
                where = replace(frame, line=chosen.statement.lineno, function=chosen.function, values={})
                source = source_of(chosen.statement, frame.text)
                kind: Kind = "if" if isinstance(chosen.statement, ast.If) else "ifexp"
                found[where.file, where.line] = Guard(kind, tuple(sorted(odd)), where, source)
    return tuple(found.values()) if len(found) <= MOST_GUARDS else ()


def _omitted(pair: Mapping[int, Trace], odd: Sequence[int]) -> Parting | None:
    """The conditions by which a rank may have left out a call that it repeats, if they are few."""
    return one_of(omissions(*pair.values()), odd)


def one_of(conditions: Sequence[Condition], odd: Sequence[int]) -> Parting | None:
    """Conditions of which one may have decided; None where there are too many, or there is none."""
    guards: list[Guard] = []
    for context, step, choice in conditions:
        if isinstance(choice.statement, ast.For):
            skips = exits(context.frame.text, choice.statement.iter, skips=True)
            guards += (_guard(context.frame, one, odd) for one in skips)
        decision = Decision(choice.kind, context, step, choice.statement, asked_by(choice), {})
        guards.append(guard(decision, odd))
    return Parting(guards=tuple(guards)) if 0 < len(guards) <= MOST_GUARDS else None


def _in_library(one: Stack, other: Stack) -> bool:
    """True where it is in a library's code that two stacks come apart, and not in the user's."""
    apart = next((n for n, both in enumerate(zip(one, other, strict=False)) if both[0] != both[1]), None)
    if apart is None or not (one[apart].user and other[apart].user):
        return True
    if one[apart].function != other[apart].function or one[apart].file != other[apart].file:
        return False
    behind = min((one, other), key=lambda stack: stack[apart].line)  # in what the other has come out of
    return apart + 1 < len(behind) and not behind[apart + 1].user


def _guard(frame: Frame, telling: Telling, odd: Sequence[int]) -> Guard:
    line, function = telling.statement.lineno, telling.function.name
    source = source_of(telling.statement, frame.text)
    where = replace(frame, line=line, function=function, values={})
    return Guard("if", tuple(sorted(odd)), where, source)


def _decision(divergence: Divergence, pair: Mapping[int, Trace]) -> tuple[Decision, dict[int, str]]:
    """A statement as it is told, and the way that each of two ranks has taken."""
    choice = divergence.choice
    read = dict(zip(pair, divergence.values, strict=True))
    decision = Decision(
        choice.kind, divergence.context, divergence.step, choice.statement, asked_by(choice), read
    )
    ways = dict(zip(pair, divergence.labels, strict=True))
    for rank, label in ways.items():
        leaves = _return_in(choice, label)
        inside = _way(decision, pair[rank].stack)
        if leaves is not None and (inside is None or inside == AFTER):
            told_ways = {one: RETURNED if one == rank else WENT_ON for one in ways}
            return replace(decision, kind="return", node=leaves), told_ways
    places = {rank: _way(decision, trace.stack) for rank, trace in pair.items()}
    if None in places.values() or len({*places.values()}) < 2:
        places = {rank: _label(choice, way, places[rank]) for rank, way in ways.items()}
    return decision, {rank: place or AFTER for rank, place in places.items()}


def _label(choice: Choice, way: str, place: str | None) -> str:
    """What a reader calls the way of a rank."""
    inside = place if place is not None and place != AFTER else None
    if choice.kind == "try":
        return inside or (AFTER if way == RAISED else label_of_part(choice.statement, "body"))
    return (inside if way == "no" else None) or choice.ways.get(way, AFTER)


def _return_in(choice: Choice, label: str) -> ast.Return | None:
    """The `return` with which a way of an `if` ends."""
    if not isinstance(choice.statement, ast.If):
        return None
    for _, block, asked in parts(choice.statement):
        last = block[-1] if block else None
        if asked and asked[-1] == (choice.test, label == "yes") and isinstance(last, ast.Return):
            return last
    return None


def _aligned(traces: Mapping[int, Trace]) -> Mapping[int, Trace]:
    """The traces, from the first line that all ranks have on where they were started in other ways."""
    stacks = [trace.stack for trace in traces.values() if trace.stack]
    if len({(stack[0].file, stack[0].function) for stack in stacks}) < 2:
        return traces
    common = next((frame for frame in stacks[0] if all(frame in stack for stack in stacks)), None)
    if common is None:
        return traces
    return {
        rank: replace(trace, stack=trace.stack[[*trace.stack].index(common) :])
        for rank, trace in traces.items()
        if trace.stack
    }


def _nearness(
    ranks: Sequence[int], others: Sequence[int], waited_for: Mapping[int, Collection[int]]
) -> int:
    """2 where some of these ranks wait for some of the others, 1 where others wait for them, else 0."""
    if any(peer in others for rank in ranks for peer in waited_for.get(rank, ())):
        return 2
    return int(any(peer in ranks for rank in others for peer in waited_for.get(rank, ())))


def _together(one: Stack, other: Stack) -> int:
    """How many frames two ranks have in common."""
    return sum(
        1 for _ in itertools.takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False))
    )


def _way(decision: Decision, stack: Stack) -> str | None:
    """Which part of a statement a rank is in, or that it is past it; None where that cannot be told."""
    frame = decision.context.frame_in(stack)
    if frame is None:
        return None
    for step in path(decision.context.flow.function, frame.line):
        if step.node is decision.node:
            return label_of_part(step.node, step.part) if step.part else None
    past = isinstance(decision.node, ast.stmt) and frame.line > (decision.node.end_lineno or 0)
    return {"return": WENT_ON}.get(decision.kind, AFTER) if past else None


def exited(stacks: Mapping[int, Stack], gone: Sequence[int]) -> Parting | None:
    """The line at which ranks have ended by themselves, and what it stands under.

    Args:
        stacks: rank -> frames, outermost first; gone: the ranks that have ended.
    """
    together = grouped({rank: users_of(stacks[rank]) for rank in gone})
    at_lines = {stack: ranks for stack, ranks in together.items() if stack}
    if len(at_lines) != 1:
        return None
    ((stack, ranks),) = at_lines.items()
    here = Contexts().place(stack)
    steps = path(here.context.flow.function, stack[-1].line) if here is not None else ()
    if here is None or here.below or not steps:
        return None
    flow = here.context.flow
    tests = tuple(test for test, _ in next((step.tests for step in reversed(steps) if step.tests), ()))
    asked = [n for n, step in enumerate(flow.steps) if step.choice and step.choice.test in tests[-1:]]
    decision = Decision("exit", here.context, (asked or [*here.steps])[0], steps[-1].node, tests)
    others = [rank for rank in sorted(stacks) if rank not in ranks]
    return told(decision, stacks, {EXITED: ranks, **({WENT_ON: others} if others else {})})
