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
from .environment import Environment, may_be, values_at_call
from .reach import Reach
from .state import Observation, Point, State

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
        observation: Observation,
        starts: Sequence[tuple[Context, int, bool]],
        makers: frozenset[tuple[Context, int]] | None,
        stops: frozenset[tuple[Context, int]],
        several: bool,
        within: Context | None = None,
    ) -> None:
        self.observation, self.makers, self.several, self.within = observation, makers, several, within
        self.calls = observation.calls
        self.environment, self.reach = Environment(observation), Reach()
        self._next: dict[tuple[Context, int], int] = {}
        self._stops = stops
        first = [
            State(context, step if back else self.next(context, step), back, 0, last, values)
            for context, step, back in starts
            for last in ([len(context.lineage)] if context is within else self._last(context, 0))
            for values in [self.environment.at_start(context, step, last)]
        ]
        points = self._explore(first)
        _propagate(points.values())
        self.starts = [points[state] for state in first if points[state].start_values]

    def next(self, context: Context, step: int) -> int:
        """The first step from one on at which anything is decided, called or known."""
        number = self._next.get((context, step))
        if number is None:
            number, visited = step, set[int]()
            while number not in visited and self._is_plain(context, number):
                visited.add(number)
                number = next(to for label, to in context.flow.steps[number].edges if label != RAISED)
            self._next[context, step] = number
        return number

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
        last = self.calls[-1]
        waits = state.context.flow.steps[state.step].name in WAITS
        return state.call_count == len(self.calls) and last is not None and (waits or not last.op)

    def explains(self, peer: Explanation) -> bool:
        """False where this rank passes the first call that differs, which a library made on the other.

        The library has decided then, and no statement of the user's before. What a loop goes through may
        have made that call at its start: who passes its head may have come to its end.
        """
        places = zip(self.calls, peer.calls, strict=False)
        differs = next((n for n, (call, peer_call) in enumerate(places) if call != peer_call), 0)
        place = peer.calls[differs]
        return place is None or self._may_avoid(place, differs)

    def _may_avoid(self, place: Place, call_count: int) -> bool:
        """True where the rank need not pass a place after so many calls without making one there."""
        steps = {n for n in place.steps if _may_call(place.context.flow.steps[n])}
        pending, visited = [*self.starts], {*self.starts}
        while pending:
            point = pending.pop()
            if not point.leads:
                return True
            state = point.state
            silent = (state.context, state.back, state.call_count) == (place.context, False, call_count)
            silent = silent and state.step in steps
            ways = {label for label, _ in state.context.flow.steps[state.step].edges} - {RAISED}
            new = {to for label, to in point.leads if not (silent and label in ways)} - visited
            visited |= new
            pending += new
        return False

    def values_at(
        self, point: Point, after: Point, expressions: Sequence[ast.expr]
    ) -> tuple[Values, frozenset[str]]:
        """What is known of the names of expressions at a point, by all ways on from the next one.

        Returns:
            The values, and those of the names that have not been bound since.
        """
        context, bound = point.state.context, set[str]()
        pending, visited = [after], {after}
        while pending:
            successor = pending.pop()
            if successor.leads and successor.state.context is context:
                bound |= binds(context.flow.steps[successor.state.step])
            new = {to for _, to in successor.leads} - visited
            visited |= new
            pending += new
        values, unchanged = dict[str, Plain](), set[str]()
        for expression in expressions:
            unchanged |= self.environment.now(point.state, expression, bound).keys()
            known_values = self.environment.values_of(point.state, expression, bound)
            values |= {name: known_values[name] for name in names(expression) if name in known_values}
        return values, frozenset(unchanged)

    # -- exploring
    # -- exploring

    def _explore(self, first: Sequence[State]) -> dict[State, Point]:
        points = {state: Point(state) for state in first}
        pending = [*points.values()]
        while pending:
            point = pending.pop()
            if point.state.call_count == len(self.calls):
                point.start_values = self.environment.solved(point.state)
                continue
            for label, state in self._leads(point.state):
                if not self._may_reach(state):
                    continue
                if state not in points:
                    points[state] = Point(state)
                    pending.append(points[state])
                point.leads.append((label, points[state]))
            if len(points) > MOST_STATES:
                raise TooManyError
        return points

    def _may_reach(self, state: State) -> bool:
        """False where no way leads to the place of the next call that is known, whatever is decided."""
        place = self._next_place(state)
        return place is None or self.reach.leads(state.context, state.step, place)

    def _next_place(self, state: State) -> Place | None:
        return self.calls[state.call_count] if state.call_count < len(self.calls) else None

    def _leads(self, state: State) -> Iterator[tuple[str, State]]:
        context, step = state.context, state.context.flow.steps[state.step]
        if state.step in (EXIT, UNHANDLED):
            yield from self._after_exit(state)
            return
        place = self._makes(state)
        if place is not None and (not state.back or (self.several and not is_collective(step.node))):
            yield from self._after_call(state, place)
        children = [child for child in context.children if state.step in child.steps]
        direct = [child for child in children if not child.through_library]
        if not state.back:
            yield from self._inward(state, step, direct or children, bool(direct))
            return
        for child in () if direct else children:
            yield from self._entered(state, child)
        if place is None and is_collective(step.node):
            yield from self._raised(state, step)
        yield from self._on(state, step)

    def _inward(
        self, state: State, step: Step, children: Sequence[Context], direct: bool
    ) -> Iterator[tuple[str, State]]:
        """Enter what a step calls, or pass it where it may be silent and does not itself call any."""
        for child in children:
            yield from self._entered(state, child)
        if not self._may_be_silent(state):
            return
        if step.name:
            yield from self._raised(state, step)
        if not direct:
            yield from self._on(state, step)

    def _after_call(self, state: State, place: Place) -> Iterator[tuple[str, State]]:
        """Make a call that is known, if what was known there agrees with what is known here."""
        values, then = dict(state.values), values_at_call(place)
        if all(may_be(values.get(name), value) for name, value in then.items()):
            goes_on = state.call_count + 1 < len(self.calls)
            values_now = frozenset({**values, **then}.items()) if then and goes_on else state.values
            after = state._replace(back=True, call_count=state.call_count + 1, values=values_now)
            yield f"calls {place.below}", after

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

    def _after_exit(self, state: State) -> Iterator[tuple[str, State]]:
        context, parent = state.context, state.context.parent
        if parent is None:
            ends = state.call_count == len(self.calls) - 1 and self.calls[-1] is None
            if ends and state.step == EXIT:
                yield "", state._replace(call_count=state.call_count + 1)
            return
        if state.last >= len(context.lineage) or context is self.within:
            return
        values = frozenset(entry for entry in state.values if entry[0][0] != context.number)
        for step in context.steps:
            caller = State(parent, step, True, state.call_count, state.last, values)
            if state.step == EXIT:
                yield "", caller
            else:
                yield from self._raised(caller, parent.flow.steps[step])

    def _entered(self, state: State, child: Context) -> Iterator[tuple[str, State]]:
        arguments = self.environment.arguments(state, child)
        values = state.values | frozenset(arguments)
        for last in self._last(child, state.call_count, state.last):
            first = self.next(child, ENTRY)
            yield f"enters {child.number}", State(child, first, False, state.call_count, last, values)

    def _last(self, context: Context, call_count: int, before: int = 0) -> Iterator[int]:
        """How many functions may be entered for the last time where a context is entered."""
        chain = context.lineage
        if (
            context.is_called_once
            and context in self.observation.now
            and self._remains_in(context, call_count)
        ):
            yield len(chain)
            return
        once = takewhile(lambda outer: outer.is_called_once and outer in self.observation.now, chain)
        least = min(before or sum(1 for _ in once), len(chain) - 1)
        yield least
        for depth in range(least + 1, len(chain) + 1):
            entered = chain[depth - 1]
            if entered not in self.observation.now or not self._remains_in(entered, call_count):
                return
            if before and depth < len(chain):
                continue
            yield depth

    def _remains_in(self, context: Context, call_count: int) -> bool:
        return all(
            context.parent is None if place is None else context in place.context.lineage
            for place in self.calls[call_count:]
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
                number = self.next(state.context, to)
                yield label, state._replace(step=number, back=False, values=values)


def _propagate(points: Collection[Point]) -> None:
    """Tell each point what is told at those to which it leads; lead to none where nothing is."""
    predecessors: dict[Point, list[Point]] = {}
    pending = []
    for point in points:
        pending += [point] if point.start_values else []
        for _, to in point.leads:
            predecessors.setdefault(to, []).append(point)
    while pending:
        point = pending.pop()
        for predecessor in predecessors.get(point, ()):
            if not point.start_values <= predecessor.start_values:
                predecessor.start_values |= point.start_values
                pending.append(predecessor)
    for point in points:
        point.leads = [(label, to) for label, to in point.leads if to.start_values]


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
