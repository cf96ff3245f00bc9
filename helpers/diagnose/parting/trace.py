"""What is known of two ranks, lined up: where they were together, and what each did since. No I/O."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ...model.frames import Frame
from ...model.issued import CallValues, IssuedCall
from ...program.blocks import path
from ...program.condition import Values
from ...program.flow import ENTRY, EXIT
from ...program.syntax import Loop
from ...program.turns import Turns
from .contexts import IS_MAIN, Context, Contexts, Place, Stack, followed, users_of
from .divergence import Divergences, Together, gives_roles
from .explanation import Explanation, TooManyError
from .state import Observation

WINDOWS = (40, 10, 3)
"""Calls before the first that differs, and after it, through which ranks are followed. Fewer are taken
where the ways through more of them are too many: what is known is the same, from a later start on."""

MOST_GIVEN_UP = 3
"""How often there may be too many ways: an answer is wanted within a second."""


class Trace(msgspec.Struct, frozen=True):
    """What is known of a rank.

    Attributes:
        stack: where it is, outermost frame first.
        first: the number of the first of `calls`; calls: those of one group, the last of which may be
            where it is.
        values: of each call, what its frames held, as `Issued` has it.
        ended: True where it has come to the end of the program, and has no stack.
        op: the collective that it has come to and cannot leave without the others; empty for none.
    """

    rank: int | None
    stack: Stack
    first: int = 1
    calls: Sequence[IssuedCall] = ()
    values: Sequence[CallValues] = ()
    ended: bool = False
    op: str = ""

    def calls_from(self, first: int) -> list[tuple[Stack, str]]:
        """Its calls from a number on: outermost frame first, with their values, and the operation."""
        values = self.values or [()] * len(self.calls)
        pairs = list(zip(self.calls, values, strict=True))[first - self.first :]
        return [(_then(call, frame_values), call.op) for call, frame_values in pairs]

    def key(self, first: int) -> tuple[object, ...]:
        """What ranks share that have gone one way: where they are, and what they have called since."""
        calls = self.calls[max(0, first - self.first) :]
        return followed(self.stack), self.op, self.first + len(self.calls), tuple(calls), self.ended


Makers = frozenset[tuple[Context, int]] | None
"""The steps that make a call each time they are passed, each with its context; None for any."""


Repetition = tuple[Turns, tuple[Frame, Frame]]
"""What is repeated around two ranks, with the frames of both that may tell the iterations."""


class _Assumption(NamedTuple):
    """What is assumed of the calls that ranks make.

    Attributes:
        several: True where a library may make several at once.
        each_time: file, function and step of what makes a call each time it is passed.
    """

    several: bool
    each_time: frozenset[tuple[str, str, int]]

    def holds_only_if(self, weaker: _Assumption) -> bool:
        """True where this one cannot hold without the other."""
        return self.several <= weaker.several and self.each_time >= weaker.each_time


class _Question(NamedTuple):
    """Which ways lead two ranks to where they are.

    Attributes:
        starts: a context, a step of it, and whether its call has been made.
        in_step: whether both are in the same iteration of what is around it; None where that is only
            known if they make a call each time.
    """

    first: Observation
    second: Observation
    starts: Sequence[tuple[Context, int, bool]]
    in_step: bool | None

    def answer(self, refuted: set[_Assumption]) -> Divergences | None:
        """The statements at which they may have parted; None where nothing leads there.

        Args:
            refuted: what is known to be wrong; what turns out to be so is added.

        Raises:
            TooManyError: there are more ways than can be looked at.
        """
        given_up = 0
        for assumption, makers in self._assumptions():
            if any(assumption.holds_only_if(wrong) for wrong in refuted):
                continue
            try:
                divergences, is_possible = self._under(assumption, makers)
            except TooManyError:
                given_up += 1
                if given_up == MOST_GIVEN_UP:
                    break
                continue
            if divergences.statements or divergences.elsewhere or divergences.together:
                in_step = self.in_step if self.in_step is not None else self._begins_at(makers)
                return divergences if in_step else divergences._replace(elsewhere=True)
            if not is_possible:
                refuted.add(assumption)
        if given_up:
            raise TooManyError
        return None

    @property
    def _sides(self) -> tuple[Observation, Observation]:
        return self.first, self.second

    def _assumptions(self) -> Iterator[tuple[_Assumption, Makers]]:
        """What may be assumed, the strongest first, each with what makes a call each time then."""
        call_counts = Counter(place for side in self._sides for place in side.places[:-1])
        for several, least in itertools.product((False, True), _shares(call_counts)):
            often = [place for place, calls in call_counts.items() if calls >= least]
            makers = frozenset(spot for place in often for spot in place.spots) if call_counts else None
            yield _Assumption(several, frozenset(_key(*spot) for spot in makers or ())), makers

    def _under(self, assumption: _Assumption, makers: Makers) -> tuple[Divergences, bool]:
        """The statements at which the ranks may have parted, and whether both have a way at all.

        Raises:
            TooManyError: there are more ways than can be looked at.
        """
        stops = frozenset(spot for side in self._sides for place in side.places for spot in place.spots)
        within = next((context for context, _, is_called in self.starts if not is_called), None)
        explanation, peer_explanation = (
            Explanation(side, self.starts, makers, stops, assumption.several, within)
            for side in self._sides
        )
        divergences, possible = (
            Together(explanation, peer_explanation).divergences(),
            bool(explanation.starts and peer_explanation.starts),
        )
        if (
            makers is not None
            and possible
            and not (explanation.explains(peer_explanation) and peer_explanation.explains(explanation))
        ):
            divergences = Divergences((), True, divergences.together)
        return divergences, possible

    def _begins_at(self, makers: Makers) -> bool:
        """True where ranks begin at what makes a call each time: then its number tells the iteration."""
        return makers is not None and any((context, step) in makers for context, step, _ in self.starts)


def _key(context: Context, step: int) -> tuple[str, str, int]:
    return context.frame.file, context.frame.function, step


def _shares(call_counts: Mapping[Place, int]) -> Iterator[int]:
    """How often at least a place must have made calls to count as one that makes some each time.

    A library makes some calls now and then, as DDP does when it orders its buckets anew. What is called
    in each iteration is called most often; so the rarest are the first of which less is expected.
    """
    counts = sorted({0, *call_counts.values()})
    yield from dict.fromkeys((0, *(calls for calls in counts if 2 * calls > counts[-1]), counts[-1] + 1))


def divergences(trace: Trace, peer_trace: Trace) -> Divergences | None:
    """The statements at which two ranks may have parted; None where nothing can be told.

    By what both have called, since the last call that they made together; where that is not known, by
    where they are.

    Raises:
        TooManyError: there are more ways than can be looked at.
    """
    candidates = _answered(trace, peer_trace)
    decision = candidates.decision if candidates is not None and _have_met(trace, peer_trace) else None
    roles = decision is not None and gives_roles(decision, trace.stack, peer_trace.stack)
    return None if roles else candidates


def _answered(trace: Trace, peer_trace: Trace) -> Divergences | None:
    refuted, has_calls = set[_Assumption](), False
    for window in WINDOWS:
        question = _by_calls(trace, peer_trace, window)
        has_calls = has_calls or question is not None
        try:
            divergences = question.answer(refuted) if question is not None else None
        except TooManyError:
            continue
        if divergences is not None:
            return divergences
        break
    question = _by_stacks(trace, peer_trace)
    divergences = question.answer(set()) if question is not None else None
    in_loop = divergences is not None and any(
        divergence.choice.kind in ("for", "while") for divergence in divergences.statements
    )
    # A rank that has left a loop may have made as many iterations as one that is in it: its calls tell,
    # and they have not been explained.
    return (
        divergences._replace(elsewhere=True)
        if divergences is not None and has_calls and in_loop
        else divergences
    )


def _have_met(trace: Trace, peer_trace: Trace) -> bool:
    """True where both have made a call together, each from a line of its own."""
    pairs = zip(*_calls_of_both(trace, peer_trace), strict=False)
    return any(call.op == peer_call.op and not _same(call, peer_call) for call, peer_call in pairs)


def _calls_of_both(trace: Trace, peer_trace: Trace) -> list[Sequence[IssuedCall]]:
    """The calls of each of two ranks, from the first number on that is known of both."""
    first = max(trace.first, peer_trace.first)
    return [side.calls[first - side.first :] for side in (trace, peer_trace)]


def _by_calls(trace: Trace, peer_trace: Trace, window: int) -> _Question | None:
    first = max(trace.first, peer_trace.first)
    calls = _calls_of_both(trace, peer_trace)
    if not all(calls):
        return None
    differs = len([*itertools.takewhile(lambda pair: _same(*pair), zip(*calls, strict=False))])
    begin = max(differs - window, int(first > 1))
    if begin > differs:
        return None
    contexts = Contexts()
    sides = [
        _observation(contexts, side, first, begin, differs + window) for side in (trace, peer_trace)
    ]
    if sides[0] is None or sides[1] is None:
        return None
    start = sides[0].start
    starts = [(root, ENTRY, False) for root in contexts.roots]
    if start is not None:
        starts = [(start.context, step, True) for step in start.steps]
    if not begin and len(starts) > 1:
        return None
    stacks = [side.calls_from(first)[begin - 1][0] for side in (trace, peer_trace)] if begin else []
    in_step = _in_step(start, *stacks) if start is not None else True
    return None if in_step is False else _Question(sides[0], sides[1], starts, in_step)


def _in_step(at: Place, stack: Stack, peer_stack: Stack) -> bool | None:
    """Whether two ranks made a call together in the same iteration of all that repeats it."""
    loops = list(loops_around(at.context.lineage, followed(stack), followed(peer_stack)))
    counted = [turns.counts(*frames) for turns, frames in loops]
    if any(count != peer_count for pairs in counted for count, peer_count in pairs):
        return False
    return True if all(counted) else None


def _observation(
    contexts: Contexts, trace: Trace, first: int, begin: int, end: int
) -> Observation | None:
    """What is known of a rank since the start.

    Args:
        first: number of the first call that is known of both; begin: how many of them are left out;
            end: how many are followed, with those.
    """
    calls = trace.calls_from(first)
    start = contexts.place(*calls[begin - 1]) if begin else None
    places = [contexts.place(*call) for call in calls[begin:end]]
    followed_places = [place for place in places if place is not None]
    if begin and start is None:
        return None
    if len(calls) > end:
        return Observation(trace.rank, followed_places, {}, start)
    if trace.ended:
        return Observation(trace.rank, [*followed_places, None], _at_end(contexts), start)
    op = trace.op
    if places and users_of(calls[-1][0]) == users_of(trace.stack):
        followed_places, op = followed_places[:-1], calls[-1][1]
    place = contexts.place(_without_sources(trace.stack), op)
    return (
        None if place is None else Observation(trace.rank, [*followed_places, place], _now(place), start)
    )


def _by_stacks(trace: Trace, peer_trace: Trace) -> _Question | None:
    contexts = Contexts()
    places = [contexts.place(side.stack, side.op) for side in (trace, peer_trace)]
    if len(contexts.roots) != 1:
        return None
    observations = [
        Observation(side.rank, [place], _now(place) if place else _at_end(contexts))
        for side, place in zip((trace, peer_trace), places, strict=True)
        if place is not None or side.ended
    ]
    if len(observations) < 2:
        return None
    if places[0] is None or places[1] is None:
        return _Question(observations[0], observations[1], [(contexts.roots[0], ENTRY, False)], True)
    common = places[0].shared(places[1])
    loops = [*loops_around(common, followed(trace.stack), followed(peer_trace.stack))]
    return _since_common(common, loops, observations)


def _since_common(
    common: Sequence[Context], loops: Sequence[Repetition], observations: Sequence[Observation]
) -> _Question:
    """Which ways lead two ranks on from the innermost loop, else function, that both are in."""
    counted = [turns.counts(*frames) for turns, frames in loops]
    at, depth = common[-1], len(common) - 1
    inner = loops[-1][0] if loops and loops[-1][0].frame == depth and loops[-1][0].loop else None
    equal = [bool(pairs) and len({*pairs}) == 1 and pairs[0][0] == pairs[0][1] for pairs in counted]
    if inner is None:
        return _Question(observations[0], observations[1], [(at, ENTRY, False)], all(equal))
    head = min(at.flow.deciding(inner.loop))
    begins = _begins(inner, loops[-1][1])
    first, second = (replace(observation, counted=begins) for observation in observations)
    return _Question(first, second, [(at, head, False)], all(equal[:-1]) and bool(begins))


def _begins(turns: Turns, frames: tuple[Frame, Frame]) -> dict[str, int]:
    """What counts the iterations, before that one of two ranks which is the earlier."""
    begins = {}
    for counter in turns.counters:
        numbers = [counter.at_start(frame) for frame in frames]
        read = [value for value in numbers if value is not None]
        if len(read) == len(numbers):
            begins[counter.name] = min(read) - (counter.raised is None)
    return begins


def loops_around(contexts: Sequence[Context], stack: Stack, peer_stack: Stack) -> Iterator[Repetition]:
    """What is repeated around both ranks, with the frames that may tell the iterations."""
    for depth, context in enumerate(contexts):
        frames = (stack[depth], peer_stack[depth])
        if context.through_library:
            yield Turns.of_calls(depth, context.flow.function), frames
        steps = (path(context.flow.function, frame.line) for frame in frames)
        for step, peer_step in zip(*steps, strict=False):
            if not step.within(peer_step):
                break
            if isinstance(step.node, Loop) and step.part == "body":
                yield Turns.of_loop(depth, step.node), frames


def _now(place: Place) -> dict[Context, tuple[frozenset[int], Values]]:
    """The steps at which a rank is in each context, and the values that are read there."""
    return {context: (at, values) for context, at, values in place.values}


def _then(call: IssuedCall, values: CallValues) -> Stack:
    """The frames of a call, outermost first, with what they held; libraries are not followed."""
    frame_values = iter(values)
    frames = [
        replace(frame, values=next(frame_values, {})) if frame.user else replace(frame, text="")
        for frame in call.stack
    ]
    return tuple(reversed(frames))


def _at_end(contexts: Contexts) -> dict[Context, tuple[frozenset[int], Values]]:
    return {root: (frozenset({EXIT}), IS_MAIN) for root in contexts.roots}


def _without_sources(stack: Stack) -> Stack:
    """A stack in which libraries are not followed: a history of calls does not tell their lines."""
    return tuple(frame if frame.user else replace(frame, text="") for frame in stack)


def _same(call: IssuedCall, peer_call: IssuedCall) -> bool:
    return call is peer_call or (
        call.op == peer_call.op and users_of(call.stack) == users_of(peer_call.stack)
    )
