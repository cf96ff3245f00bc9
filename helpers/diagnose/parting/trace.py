"""What is known of two ranks, lined up: where they were together, and what each did since. No I/O."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...model.frames import Frame
from ...model.issued import IssuedCall
from ...program.blocks import path
from ...program.condition import Values
from ...program.flow import ENTRY, EXIT, Choice
from ...program.syntax import Loop
from ...program.turns import Turns
from .contexts import Context, Contexts, Place, Stack, followed, users_of
from .divergence import Divergences, Together
from .explained import Explained, Seen, TooManyError

LONGEST = 40
"""Calls before the first that differs, and after it, through which ranks are followed."""

IS_MAIN = {"__name__": "__main__"}


@dataclass(frozen=True)
class Trace:
    """What is known of a rank.

    Attributes:
        stack: where it is, outermost frame first.
        first: the number of the first of `calls`; calls: those of one group, the last of which may be
            where it is.
        ended: True where it has come to the end of the program, and has no stack.
        op: the collective that it has come to and cannot leave without the others; empty for none.
    """

    rank: int | None
    stack: Stack
    first: int = 1
    calls: Sequence[IssuedCall] = ()
    ended: bool = False
    op: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        """What ranks share that have gone one way: where they are, and what they have called."""
        return followed(self.stack), self.first, tuple(self.calls), self.ended


class _Question(NamedTuple):
    """Which ways lead two ranks to where they are.

    Attributes:
        starts: a context, a step of it, and whether its call has been made.
        in_step: False where it is not known that both are in the same iteration of what is around it.
    """

    one: Seen
    other: Seen
    starts: Sequence[tuple[Context, int, bool]]
    in_step: bool

    def answer(self) -> Divergences | None:
        """The statements at which they may have parted; None where nothing leads there."""
        sides = (self.one, self.other)
        makers = frozenset(
            (place.context, step)
            for side in sides
            for place in side.calls[:-1]
            if place is not None
            for step in place.steps
        )
        entered = [context for context, _, called in self.starts if not called]
        for lenient in (0, 1, 2):
            ways = [
                Explained(side, self.starts, makers, lenient, next(iter(entered), None))
                for side in sides
            ]
            found = Together(*ways).divergences()
            if found.statements or found.elsewhere or found.together:
                decision = found.decision
                return found if self.in_step or (decision is not None and decision.decided) else None
        return None


def divergences(one: Trace, other: Trace) -> Divergences | None:
    """The statements at which two ranks may have parted; None where nothing can be told.

    By what both have called, since the last call that they made together; where that is not known, by
    where they are.
    """
    asks: tuple[Callable[[Trace, Trace], _Question | None], ...] = (_by_calls, _by_stacks)
    for ask in asks:
        question = ask(one, other)
        try:
            found = question.answer() if question is not None else None
        except TooManyError:
            continue
        if found is not None:
            return found
    return None


def _by_calls(one: Trace, other: Trace) -> _Question | None:
    first = max(one.first, other.first)
    calls = [trace.calls[first - trace.first :] for trace in (one, other)]
    if not all(calls):
        return None
    alike = itertools.takewhile(lambda both: _same(*both), zip(*calls, strict=False))
    differs = sum(1 for _ in alike)
    begin = max(differs - LONGEST, int(first > 1))
    if begin > differs:
        return None
    contexts = Contexts()
    last = contexts.place(_without_sources(calls[0][begin - 1].stack[::-1])) if begin else None
    if begin and last is None:
        return None
    sides = [
        _seen(contexts, trace, made[begin : differs + LONGEST], len(made) > differs + LONGEST)
        for trace, made in zip((one, other), calls, strict=True)
    ]
    if sides[0] is None or sides[1] is None or (last is None and len(contexts.roots) != 1):
        return None
    starts = [(contexts.roots[0], ENTRY, False)]
    if last is not None:
        starts = [(last.context, step, True) for step in last.steps]
    return _Question(sides[0], sides[1], starts, True)


def _seen(contexts: Contexts, trace: Trace, made: Sequence[IssuedCall], cut: bool) -> Seen | None:
    """What is known of a rank since the start; `cut` where it has made more calls than these."""
    places = [contexts.place(_without_sources(call.stack[::-1]), call.op) for call in made]
    known = [place for place in places if place is not None]
    if cut:
        return Seen(trace.rank, known, {})
    if trace.ended:
        return Seen(trace.rank, [*known, None], _at_end(contexts))
    frames, op = users_of(trace.stack), trace.op
    if made and users_of(made[-1].stack[::-1]) == frames:
        known, op = known[:-1], made[-1].op
    here = contexts.place(_without_sources(trace.stack), op)
    return None if here is None else Seen(trace.rank, [*known, here], _now(here, frames))


def _by_stacks(one: Trace, other: Trace) -> _Question | None:
    contexts = Contexts()
    places = [contexts.place(trace.stack, trace.op) for trace in (one, other)]
    if len(contexts.roots) != 1:
        return None
    sides = [
        Seen(trace.rank, [place], _now(place, followed(trace.stack)) if place else _at_end(contexts))
        for trace, place in zip((one, other), places, strict=True)
        if place is not None or trace.ended
    ]
    if len(sides) < 2:
        return None
    if places[0] is None or places[1] is None:
        return _Question(sides[0], sides[1], [(contexts.roots[0], ENTRY, False)], True)
    both = zip(places[0].context.lineage, places[1].context.lineage, strict=False)
    common = [mine for mine, its in both if mine is its]
    loops = [*_loops(common, followed(one.stack), followed(other.stack))]
    counted = [turns.both(*frames) for turns, frames in loops]
    at, depth = common[-1], len(common) - 1
    inner = loops[-1][0] if loops and loops[-1][0].frame == depth and loops[-1][0].loop else None
    equal = [bool(told) and len({*told}) == 1 and told[0][0] == told[0][1] for told in counted]
    if inner is None:
        return _Question(sides[0], sides[1], [(at, ENTRY, False)], all(equal))
    head = next(n for n, step in enumerate(at.flow.steps) if _decides(step.choice, inner.loop))
    return _Question(sides[0], sides[1], [(at, head, False)], all(equal[:-1]) and bool(counted[-1]))


def _loops(
    contexts: Sequence[Context], one: Stack, other: Stack
) -> Iterator[tuple[Turns, tuple[Frame, Frame]]]:
    """What is repeated around both ranks, with the frames that may tell the iterations."""
    for depth, context in enumerate(contexts):
        frames = (one[depth], other[depth])
        if context.through_library:
            yield Turns.of_calls(depth, context.flow.function), frames
        steps = (path(context.flow.function, frame.line) for frame in frames)
        for mine, its in zip(*steps, strict=False):
            if not mine.within(its):
                break
            if isinstance(mine.node, Loop) and mine.part == "body":
                yield Turns.of_loop(depth, mine.node), frames


def _decides(choice: Choice | None, loop: ast.stmt | None) -> bool:
    return choice is not None and choice.statement is loop


def _now(place: Place, frames: Stack) -> dict[Context, tuple[frozenset[int], Values]]:
    """The steps at which a rank is in each context, and the values that are read there."""
    lineage = place.context.lineage
    steps = [*(inner.steps for inner in lineage[1:]), place.steps]
    return {
        context: (at, frame.values if context.parent is not None else IS_MAIN | dict(frame.values))
        for context, at, frame in zip(lineage, steps, frames, strict=False)
    }


def _at_end(contexts: Contexts) -> dict[Context, tuple[frozenset[int], Values]]:
    return {root: (frozenset({EXIT}), IS_MAIN) for root in contexts.roots}


def _without_sources(stack: Stack) -> Stack:
    """A stack in which libraries are not followed: a history of calls does not tell their lines."""
    return tuple(frame if frame.user else replace(frame, text="") for frame in stack)


def _same(one: IssuedCall, other: IssuedCall) -> bool:
    return one is other or (one.op == other.op and users_of(one.stack) == users_of(other.stack))
