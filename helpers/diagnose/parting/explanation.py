"""The ways through a program that explain what is known of a rank. No I/O."""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile

from ...program.condition import Values, names
from ...program.flow import ENTRY, EXIT, RAISED, UNHANDLED, Step, binds
from ...program.syntax import Plain
from ...program.turns import counters
from .collectives import OPERATIONS, is_collective
from .contexts import Context, Place
from .environment import Environment, held, may_be
from .reach import Reach
from .state import Point, Seen, State

MOST_STATES = 4_000
"""States that are looked at for a rank at a time: an answer is wanted within a second."""

WAITS = ("wait", "synchronize")
"""Methods by which a rank waits for what it has called elsewhere."""


class TooManyError(Exception):
    """There are more states than can be looked at."""


class Explanation:
    """All ways from a start that explain what is known of a rank.

    Args:
        makers: the steps that make a call each time; None where nothing is known of calls.
        several: True where a library may make several at once.
        within: the function that both ranks are in and do not leave; None where they may have.
        stops: where the ranks that are compared are, and where they made the calls that are known.

    Attributes:
        starts: the points at which they begin.
    """

    def __init__(
        self,
        seen: Seen,
        starts: Sequence[tuple[Context, int, bool]],
        makers: frozenset[tuple[Context, int]] | None,
        stops: frozenset[tuple[Context, int]],
        several: bool,
        within: Context | None = None,
    ) -> None:
        self.seen, self.makers, self.several, self.within = seen, makers, several, within
        self.environment, self.reach = Environment(seen), Reach()
        self._next: dict[tuple[Context, int], int] = {}
        self._stops = stops
        first = [
            State(context, step if back else self.next(context, step), back, 0, last, known)
            for context, step, back in starts
            for last in ([len(context.lineage)] if context is within else self._last(context, 0))
            for known in [self.environment.at_start(context, step, last)]
        ]
        points = self._explore(first)
        _tell(points.values())
        self.starts = [points[state] for state in first if points[state].told]

    def next(self, context: Context, step: int) -> int:
        """The first step from one on at which anything is decided, called or known."""
        found = self._next.get((context, step))
        if found is None:
            found, seen = step, set[int]()
            while found not in seen and self._is_plain(context, found):
                seen.add(found)
                found = next(to for label, to in context.flow.steps[found].edges if label != RAISED)
            self._next[context, step] = found
        return found

    def _is_plain(self, context: Context, number: int) -> bool:
        """True for a step that leads to the next one, whatever is known."""
        step = context.flow.steps[number]
        raises = any(
            label == RAISED and (to != UNHANDLED or _is_handled(context)) for label, to in step.edges
        )
        leads = [to for label, to in step.edges if label != RAISED]
        matters = (
            (context, number) in self._stops
            or any(number in child.steps for child in context.children)
            or is_collective(step.node)
            or (isinstance(step.node, ast.For) and counters(step.node))
            or binds(step) & context.flow.condition_names
        )
        return step.choice is None and len(leads) == 1 and not raises and not matters

    def is_at_rest(self, state: State) -> bool:
        """True where the rank is in a place that another one may have left since: in no collective."""
        last = self.seen.calls[-1]
        waits = state.context.flow.steps[state.step].name in WAITS
        return state.made == len(self.seen.calls) and last is not None and (waits or not last.op)

    def explains(self, other: Explanation) -> bool:
        """False where this rank passes the first call that differs, which a library made on the other.

        The library has decided then, and no statement of the user's before. What a loop goes through may
        have made that call at its start: who passes its head may have come to its end.
        """
        both = zip(self.seen.calls, other.seen.calls, strict=False)
        made = next((n for n, (here, there) in enumerate(both) if here != there), 0)
        place = other.seen.calls[made]
        return place is None or self._may_avoid(place, made)

    def _may_avoid(self, place: Place, made: int) -> bool:
        """True where the rank need not pass a place after so many calls without making one there."""
        steps = {n for n in place.steps if _may_call(place.context.flow.steps[n])}
        left, known = [*self.starts], {*self.starts}
        while left:
            point = left.pop()
            if not point.leads:
                return True
            state = point.state
            silent = (state.context, state.back, state.made) == (place.context, False, made)
            silent = silent and state.step in steps
            ways = {label for label, _ in state.context.flow.steps[state.step].edges} - {RAISED}
            new = {to for label, to in point.leads if not (silent and label in ways)} - known
            known |= new
            left += new
        return False

    def known_at(
        self, point: Point, after: Point, asked: Sequence[ast.expr]
    ) -> tuple[Values, frozenset[str]]:
        """What is known of the names of expressions at a point, by all ways on from the next one.

        Returns:
            The values, and those of the names that have not been bound since.
        """
        context, bound = point.state.context, set[str]()
        left, known = [after], {after}
        while left:
            here = left.pop()
            if here.leads and here.state.context is context:
                bound |= binds(context.flow.steps[here.state.step])
            new = {to for _, to in here.leads} - known
            known |= new
            left += new
        values, kept = dict[str, Plain](), set[str]()
        for one in asked:
            kept |= self.environment.now(point.state, one, bound).keys()
            told = self.environment.values_of(point.state, one, bound)
            values |= {name: told[name] for name in names(one) if name in told}
        return values, frozenset(kept)

    # -- exploring
    # -- exploring

    def _explore(self, first: Sequence[State]) -> dict[State, Point]:
        points = {state: Point(state) for state in first}
        left = [*points.values()]
        while left:
            point = left.pop()
            if point.state.made == len(self.seen.calls):
                point.told = self.environment.solved(point.state)
                continue
            for label, state in self._leads(point.state):
                if not self._may_reach(state):
                    continue
                if state not in points:
                    points[state] = Point(state)
                    left.append(points[state])
                point.leads.append((label, points[state]))
            if len(points) > MOST_STATES:
                raise TooManyError
        return points

    def _may_reach(self, state: State) -> bool:
        """False where no way leads to the place of the next call that is known, whatever is decided."""
        place = self._next_place(state)
        return place is None or self.reach.leads(state.context, state.step, place)

    def _next_place(self, state: State) -> Place | None:
        return self.seen.calls[state.made] if state.made < len(self.seen.calls) else None

    def _leads(self, state: State) -> Iterator[tuple[str, State]]:
        context, step = state.context, state.context.flow.steps[state.step]
        if state.step in (EXIT, UNHANDLED):
            yield from self._left(state)
            return
        here = self._makes(state)
        if here is not None and (not state.back or (self.several and not is_collective(step.node))):
            yield from self._called(state, here)
        called = [child for child in context.children if state.step in child.steps]
        direct = [child for child in called if not child.through_library]
        if not state.back:
            for child in direct or called:
                yield from self._entered(state, child)
            if step.name and self._may_be_silent(state):
                yield from self._raised(state, step)
            if not direct and self._may_be_silent(state):
                yield from self._on(state, step)
            return
        for child in () if direct else called:
            yield from self._entered(state, child)
        if here is None and is_collective(step.node):
            yield from self._raised(state, step)
        yield from self._on(state, step)

    def _called(self, state: State, place: Place) -> Iterator[tuple[str, State]]:
        """Make a call that is known, if what was known there agrees with what is known here."""
        values, then = dict(state.values), held(place)
        if all(may_be(values.get(name), value) for name, value in then.items()):
            goes_on = state.made + 1 < len(self.seen.calls)
            known = frozenset({**values, **then}.items()) if then and goes_on else state.values
            yield f"calls {place.below}", state._replace(back=True, made=state.made + 1, values=known)

    def _may_be_silent(self, state: State) -> bool:
        """True for a step that may be passed without one of the calls that are known."""
        if self.makers is None:
            return True
        always = is_collective(state.context.flow.steps[state.step].node)
        return not always and (state.context, state.step) not in self.makers

    def _makes(self, state: State) -> Place | None:
        place = self._next_place(state)
        inside = place is not None and place.context is state.context and state.step in place.steps
        return place if inside else None

    def _left(self, state: State) -> Iterator[tuple[str, State]]:
        context, parent = state.context, state.context.parent
        if parent is None:
            ends = state.made == len(self.seen.calls) - 1 and self.seen.calls[-1] is None
            if ends and state.step == EXIT:
                yield "", state._replace(made=state.made + 1)
            return
        if state.last >= len(context.lineage) or context is self.within:
            return
        values = frozenset(item for item in state.values if item[0][0] != context.number)
        for step in context.steps:
            there = State(parent, step, True, state.made, state.last, values)
            if state.step == EXIT:
                yield "", there
            else:
                yield from self._raised(there, parent.flow.steps[step])

    def _entered(self, state: State, child: Context) -> Iterator[tuple[str, State]]:
        given = self.environment.given(state, child)
        values = state.values | frozenset(given)
        for last in self._last(child, state.made, state.last):
            first = self.next(child, ENTRY)
            yield f"enters {child.number}", State(child, first, False, state.made, last, values)

    def _last(self, context: Context, made: int, before: int = 0) -> Iterator[int]:
        """How many functions may be entered for the last time where a context is entered."""
        chain = context.lineage
        if context.is_called_once and context in self.seen.now and self._remains_in(context, made):
            yield len(chain)
            return
        once = takewhile(lambda one: one.is_called_once and one in self.seen.now, chain)
        least = min(before or sum(1 for _ in once), len(chain) - 1)
        yield least
        for depth in range(least + 1, len(chain) + 1):
            entered = chain[depth - 1]
            if entered not in self.seen.now or not self._remains_in(entered, made):
                return
            if before and depth < len(chain):
                continue
            yield depth

    def _remains_in(self, context: Context, made: int) -> bool:
        return all(
            context.parent is None if place is None else context in place.context.lineage
            for place in self.seen.calls[made:]
        )

    def _raised(self, state: State, step: Step) -> Iterator[tuple[str, State]]:
        for label, to in step.edges:
            if label == RAISED and (to != UNHANDLED or _is_handled(state.context)):
                yield RAISED, state._replace(step=self.next(state.context, to), back=False)

    def _on(self, state: State, step: Step) -> Iterator[tuple[str, State]]:
        if not step.name:
            yield from self._raised(state, step)
        for label, to in self.environment.ways(state):
            values = self.environment.after(state, step, label)
            if values is not None:
                there = self.next(state.context, to)
                yield label, state._replace(step=there, back=False, values=values)


def _tell(points: Collection[Point]) -> None:
    """Tell each point what is told at those to which it leads; lead to none where nothing is."""
    before: dict[Point, list[Point]] = {}
    left = []
    for point in points:
        left += [point] if point.told else []
        for _, to in point.leads:
            before.setdefault(to, []).append(point)
    while left:
        point = left.pop()
        for one in before.get(point, ()):
            if not point.told <= one.told:
                one.told |= point.told
                left.append(one)
    for point in points:
        point.leads = [(label, to) for label, to in point.leads if to.told]


def _may_call(step: Step) -> bool:
    """True for a step in which a library may make calls, or none, each time."""
    return step.choice is None and step.name not in OPERATIONS


@functools.lru_cache(maxsize=1024)
def _is_handled(context: Context) -> bool:
    """True where a function that has called another one takes an exception of it."""
    parent = context.parent
    if parent is None:
        return False
    return any(parent.flow.steps[n].handlers for n in context.steps) or _is_handled(parent)
