"""The conditions on which a repeated call depends: where one rank may have left it out. No I/O."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from ...program.condition import made_of
from ...program.flow import EXIT, RAISED, Choice, Flow
from ...program.syntax import dotted, holds
from ...program.turns import Turns
from .contexts import Context, Contexts, Place, followed, users_of
from .trace import Trace, loops_around


def omissions(one: Trace, other: Trace) -> tuple[tuple[Context, int, Choice], ...]:
    """The conditions in a loop around two ranks on which the call of one of them depends, nearest first.

    Of ranks whose calls do not match although they repeat the same lines, one has left a call out in
    some iteration, or made one more, in whichever iterations they are by now. That call may be another
    than those in which they are, so none of these is known to have decided. Who waits for a handle, in
    no function of a library's, has made its call somewhere else, and so tells nothing.

    Returns:
        The context and the step of each, with the choice.
    """
    contexts = Contexts()
    places = [
        place
        for trace in (one, other)
        if trace.stack and not trace.stack[-1].user
        for place in [contexts.place(trace.stack, trace.op)]
        if place is not None
    ]
    if len(places) < 2 or users_of(one.stack) == users_of(other.stack):
        return ()
    both = zip(places[0].context.lineage, places[1].context.lineage, strict=False)
    shared = [mine for mine, its in both if mine is its]
    around = [turns for turns, _ in loops_around(shared, followed(one.stack), followed(other.stack))]
    if not around:
        return ()
    counted = {counter.name for turns in around for counter in turns.counters}
    conditions = {
        (context.number, step): (context, step, choice)
        for place in places
        for context, step, choice in _conditions(place, around[-1])
        if not _is_alike(choice, counted)
    }
    nearest = sorted(
        conditions.values(), key=lambda found: (len(found[0].lineage), found[2].statement.lineno)
    )
    return tuple(reversed(nearest))


def _conditions(place: Place, inside: Turns) -> Iterator[tuple[Context, int, Choice]]:
    """The choices that decide, in one turn of a loop, whether a rank comes to a place."""
    for depth, (context, at) in enumerate(place.levels):
        loop = inside.loop if depth == inside.frame else None
        if depth < inside.frame or (depth == inside.frame and loop is None):
            continue
        choices = [(number, step.choice) for number, step in enumerate(context.flow.steps)]
        heads = {number for number, choice in choices if choice and choice.statement is loop}
        for number, choice in choices:
            if choice is None or number in heads or choice.kind in ("try", "with"):
                continue
            if loop is not None and not holds(loop, choice.statement.lineno):
                continue
            if _decides(context.flow, number, at, heads | {EXIT}):
                yield context, number, choice


def _decides(flow: Flow, choice: int, at: Collection[int], ends: Collection[int]) -> bool:
    """True where the ways of a choice differ in whether they lead to some steps, or past them.

    Args:
        ends: where a turn is over.
    """
    handled = dict.fromkeys(range(len(flow.steps)), RAISED)
    ways = [to for label, to in flow.steps[choice].edges if label != RAISED]
    comes = [to in at or (to not in ends and flow.leads(to, at, ends, handled)) for to in ways]
    passes = [to in ends or (to not in at and flow.leads(to, ends, at, handled)) for to in ways]
    return len({way for way in zip(comes, passes, strict=True) if any(way)}) > 1


def _is_alike(choice: Choice, counted: Collection[str]) -> bool:
    """True for what all ranks answer alike in the same turn: by constants, and by what counts turns."""
    if choice.test is not None:
        return made_of(choice.test, counted)
    match choice.statement:
        case ast.For(iter=ast.Call(func=function, args=parts)) if dotted(function) == "range":
            return all(made_of(part, counted) for part in parts)
    return False
