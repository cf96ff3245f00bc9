"""From what is known of all ranks to the statement at which they parted. No I/O."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from ...model.clauses import grouped
from ...model.frames import Frame
from ...model.parting import Guard, Parting
from ...program.blocks import function_of, label_of_part, parts, path
from ...program.condition import truth
from ...program.flow import AFTER, RAISED, Choice, asked_by
from ...program.handed import handed
from ...program.hooks import Telling, callees, exits, hooks
from ...program.identity import of_rank
from ...program.switches import switches
from .contexts import Contexts, Stack, users_of
from .decision import EXITED, RETURNED, WENT_ON, Decision
from .description import describe, guard, guard_at
from .divergence import Divergence, Divergences
from .explanation import TooManyError
from .omission import Condition, omissions
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
    first, most = _compared_classes(classes, odd, waited_for or {}, traces)
    pair = {ranks[0]: traces[ranks[0]] for ranks in (first, most)}
    try:
        candidates = divergences(*pair.values())
    except TooManyError:
        candidates = None
    divergence = candidates.decision if candidates is not None else None
    decided = divergence is not None and divergence.decided
    if mismatch and not decided and (switched := _switched(pair, first)):
        return switched
    if divergence is None:
        parting = _undecided(candidates, pair, first)
        if parting is None and mismatch:
            parting = _omitted(pair, first) or _by_arguments(candidates, pair, first)
        return parting
    return _statement_of(divergence, (first, most), classes, odd, traces)


def _statement_of(
    divergence: Divergence,
    compared: tuple[Sequence[int], Sequence[int]],
    classes: Sequence[Sequence[int]],
    odd: Sequence[int],
    traces: Mapping[int, Trace],
) -> Parting | None:
    """The statement that has decided, and which ranks went which way; None where odd ones fit none.

    Args:
        compared: the two classes of ranks that were followed side by side; classes: all of them.
    """
    pair = {ranks[0]: traces[ranks[0]] for ranks in compared}
    decision, labels = _decision(divergence, pair)
    sides = zip(compared, divergence.unchanged, strict=True)
    decision = replace(
        decision, unchanged={rank: unchanged for ranks, unchanged in sides for rank in ranks}
    )
    stacks = {rank: trace.stack for rank, trace in traces.items()}
    if divergence.reverse:
        return describe(decision, stacks, {})
    branches: dict[str, list[int]] = {}
    inside = sorted(compared, key=lambda ranks: labels[ranks[0]] in (AFTER, RETURNED))
    for ranks in (*inside, *(ranks for ranks in classes if ranks not in inside)):
        way = labels.get(ranks[0]) or _way(decision, traces[ranks[0]].stack)
        if way is None and set(odd) & set(ranks):
            return None
        if way is not None:
            branches.setdefault(way, []).extend(ranks)
    if len(branches) > 1:
        return describe(decision, stacks, branches)
    # Both are in a loop that one has left: they go through other things, or in another order.
    return describe(decision, stacks, {}) if divergence.choice.kind in ("for", "while") else None


def _compared_classes(
    classes: Sequence[Sequence[int]],
    odd: Sequence[int],
    waited_for: Mapping[int, Collection[int]],
    traces: Mapping[int, Trace],
) -> tuple[Sequence[int], Sequence[int]]:
    """The first ranks that are not where they should be, and of all others those nearest to them."""
    odd_classes = [ranks for ranks in classes if set(odd) & set(ranks)] or classes[-1:]
    first = odd_classes[0]
    peer_classes = [*odd_classes[1:], *(ranks for ranks in classes if ranks not in odd_classes)]
    return first, max(
        peer_classes,
        key=lambda ranks: (
            _nearness(first, ranks, waited_for),
            _together(traces[first[0]].stack, traces[ranks[0]].stack),
        ),
    )


def apart_by(condition: Divergence, pair: Mapping[int, Trace], traces: Mapping[int, Trace]) -> Parting:
    """How a condition is told that each of two ranks decides by its number."""
    decision, labels = _decision(condition, pair)
    unchanged = dict(zip(pair, condition.unchanged, strict=True))
    stacks = {rank: trace.stack for rank, trace in traces.items()}
    return describe(
        replace(decision, unchanged=unchanged), stacks, {labels[rank]: [rank] for rank in pair}
    )


def _undecided(
    divergences: Divergences | None, pair: Mapping[int, Trace], odd: Sequence[int]
) -> Parting | None:
    """What may have decided, where that is not known; what was told to a library, where that decided."""
    if divergences is None or not divergences.guards:
        return None if divergences is not None and divergences.together else _of_library(pair, odd)
    guards: list[Guard] = []
    for divergence in divergences.guards:
        guards += [_guard(divergence.context.frame, telling, odd) for telling in divergence.exits]
        guards.append(guard(_decision(divergence, pair)[0], odd))
    return Parting(guards=tuple(guards[:MOST_GUARDS]))


def _of_library(pair: Mapping[int, Trace], odd: Sequence[int]) -> Parting | None:
    """What was told to a library, where two ranks have come apart in its code."""
    if not _in_library(*(trace.stack for trace in pair.values())):
        return None
    frames = {frame.file: frame for trace in pair.values() for frame in trace.stack if frame.user}
    calls = frozenset[str]().union(*(callees(frame.text) for frame in frames.values()))
    tellings = [(frame, telling) for frame in frames.values() for telling in hooks(frame.text, calls)]
    by_rank = [
        (frame, telling)
        for frame, telling in tellings
        if _differs(telling.statement.test, frame.text, [*pair])
    ]
    guards = [_guard(frame, telling, odd) for frame, telling in by_rank or tellings]
    if len(guards) == 1:
        return Parting("if", guards[0].where, guards[0].source)
    return _if_few(guards)


def _by_arguments(
    divergences: Divergences | None, pair: Mapping[int, Trace], odd: Sequence[int]
) -> Parting | None:
    """The conditions by the number of a rank that decide what a library was given, if they are few."""
    elsewhere = divergences is not None and divergences.elsewhere
    if not elsewhere and not _in_library(*(trace.stack for trace in pair.values())):
        return None
    guards: dict[tuple[str, int], Guard] = {}
    for frame in dict.fromkeys(frame for trace in pair.values() for frame in users_of(trace.stack)):
        function = function_of(frame)
        for condition in handed(function, frame.line, frame.text) if function is not None else ():
            if _differs(condition.test, frame.text, [*pair]):
                line = condition.statement.lineno
                guards[frame.file, line] = guard_at(frame, condition.function, condition.statement, odd)
    return _if_few(guards.values())


def _differs(test: ast.expr, text: str, ranks: Sequence[int]) -> bool:
    """True for a condition that the numbers of ranks answer differently."""
    return len({truth(test, of_rank(test, rank, text)) for rank in ranks} - {None}) > 1


def _switched(pair: Mapping[int, Trace], odd: Sequence[int]) -> Parting | None:
    """What decides whether a library communicates where a rank is in a call of it, if that is little."""
    guards: dict[tuple[str, int], Guard] = {}
    for trace in pair.values():
        frames = users_of(trace.stack)[-1:] if trace.stack and not trace.stack[-1].user else ()
        for frame in frames:
            function = function_of(frame)
            for chosen in switches(function, frame.line, frame.text) if function is not None else ():
                line = chosen.statement.lineno
                guards[frame.file, line] = guard_at(frame, chosen.function, chosen.statement, odd)
    return _if_few(guards.values())


def _if_few(guards: Collection[Guard]) -> Parting | None:
    """Statements of which one may have decided; None where there are too many, or there is none."""
    return Parting(guards=tuple(guards)) if 0 < len(guards) <= MOST_GUARDS else None


def _omitted(pair: Mapping[int, Trace], odd: Sequence[int]) -> Parting | None:
    """The conditions by which a rank may have left out a call that it repeats, if they are few."""
    return one_of(omissions(*pair.values()), odd)


def one_of(conditions: Sequence[Condition], odd: Sequence[int]) -> Parting | None:
    """Conditions of which one may have decided; None where there are too many, or there is none."""
    guards: list[Guard] = []
    for context, step, choice in conditions:
        if isinstance(choice.statement, ast.For):
            skips = exits(context.frame.text, choice.statement.iter, skips=True)
            guards += (_guard(context.frame, telling, odd) for telling in skips)
        decision = Decision(choice.kind, context, step, choice.statement, asked_by(choice), {})
        guards.append(guard(decision, odd))
    return _if_few(guards)


def _in_library(stack: Stack, peer_stack: Stack) -> bool:
    """True where it is in a library's code that two stacks come apart, and not in the user's."""
    depth = next(
        (n for n, frames in enumerate(zip(stack, peer_stack, strict=False)) if frames[0] != frames[1]),
        None,
    )
    if depth is None or not (stack[depth].user and peer_stack[depth].user):
        return True
    frame, peer_frame = stack[depth], peer_stack[depth]
    if (frame.function, frame.file) != (peer_frame.function, peer_frame.file):
        return False
    # The one behind is in what the other has come out of.
    behind = min((stack, peer_stack), key=lambda frames: frames[depth].line)
    return depth + 1 < len(behind) and not behind[depth + 1].user


def _guard(frame: Frame, telling: Telling, odd: Sequence[int]) -> Guard:
    return guard_at(frame, telling.function.name, telling.statement, odd)


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
            ways_shown = {pair_rank: RETURNED if pair_rank == rank else WENT_ON for pair_rank in ways}
            return replace(decision, kind="return", node=leaves), ways_shown
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
    for _, block, tests in parts(choice.statement):
        last = block[-1] if block else None
        if tests and tests[-1] == (choice.test, label == "yes") and isinstance(last, ast.Return):
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
    ranks: Sequence[int], peers: Sequence[int], waited_for: Mapping[int, Collection[int]]
) -> int:
    """2 where some of these ranks wait for some of the others, 1 where others wait for them, else 0."""
    if any(peer in peers for rank in ranks for peer in waited_for.get(rank, ())):
        return 2
    return int(any(peer in ranks for rank in peers for peer in waited_for.get(rank, ())))


def _together(stack: Stack, peer_stack: Stack) -> int:
    """How many frames two ranks have in common."""
    return sum(
        1
        for _ in itertools.takewhile(
            lambda frames: frames[0] == frames[1], zip(stack, peer_stack, strict=False)
        )
    )


def _way(decision: Decision, stack: Stack) -> str | None:
    """Which part of a statement a rank is in, or that it is past it; None where that cannot be told."""
    frame = decision.context.frame_in(stack)
    if frame is None:
        return None
    for step in path(decision.context.flow.function, frame.line):
        if step.node is decision.node:
            return label_of_part(step.node, step.part) if step.part else None
    passed = isinstance(decision.node, ast.stmt) and frame.line > (decision.node.end_lineno or 0)
    return {"return": WENT_ON}.get(decision.kind, AFTER) if passed else None


def exited(stacks: Mapping[int, Stack], ended: Sequence[int]) -> Parting | None:
    """The line at which ranks have ended by themselves, and what it stands under.

    Args:
        stacks: rank -> frames, outermost first; ended: the ranks that have ended.
    """
    together = grouped({rank: users_of(stacks[rank]) for rank in ended})
    at_lines = {stack: ranks for stack, ranks in together.items() if stack}
    if len(at_lines) != 1:
        return None
    ((stack, ranks),) = at_lines.items()
    place = Contexts().place(stack)
    steps = path(place.context.flow.function, stack[-1].line) if place is not None else ()
    if place is None or place.below or not steps:
        return None
    flow = place.context.flow
    tests = tuple(test for test, _ in next((step.tests for step in reversed(steps) if step.tests), ()))
    choices = [n for n, step in enumerate(flow.steps) if step.choice and step.choice.test in tests[-1:]]
    decision = Decision("exit", place.context, (choices or [*place.steps])[0], steps[-1].node, tests)
    remaining = [rank for rank in sorted(stacks) if rank not in ranks]
    return describe(decision, stacks, {EXITED: ranks, **({WENT_ON: remaining} if remaining else {})})
