"""The ways through a program that explain what is known of a rank. No I/O."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...program.blocks import path
from ...program.condition import Values, known, names, truth, value_of
from ...program.flow import ENTRY, EXIT, RAISED, UNHANDLED, Edge, Step, binds
from ...program.stored import Stored
from ...program.syntax import Loop, Plain
from ...program.turns import counters
from .collectives import is_collective
from .contexts import Context, Place

MOST_STATES = 20_000
"""States that are looked at for a rank: an answer is wanted within a second."""

MOST_TURNS = 1000
"""Turns of a loop that are counted."""

WAITS = ("wait", "synchronize")
"""Methods by which a rank waits for what it has called elsewhere."""

FURTHEST = 8
"""Turns of a loop that are followed without a call that is known, or a number that is."""


@dataclass(frozen=True)
class Offset:
    """A number that is not known, but how much more it is than at the start."""

    name: tuple[int, str]
    by: int


Known = tuple[tuple[tuple[int, str], Plain | Offset], ...]
"""(context, name) -> value, sorted by name."""


class State(NamedTuple):
    """Where a rank may be, and what is known of it there.

    Attributes:
        back: True where the call of the step has been made.
        made: how many of the calls that are known have been made.
        last: how many of the functions in which the rank is now have been entered for the last time.
        values: of variables, by context.
    """

    context: Context
    step: int
    back: bool
    made: int
    last: int
    values: Known

    @property
    def position(self) -> tuple[Context, int, bool, int]:
        """What two ranks have in common that have gone the same way."""
        return (self.context, self.step, self.back, self.made)


@dataclass(frozen=True)
class Seen:
    """What is known of a rank.

    Attributes:
        calls: where it made each call since the start, and where it is: the last of them; None for the
            end of the program.
        now: the frames in which it is, by context.
        start: the call that it had made at the start, if it had made one.
    """

    rank: int | None
    calls: Sequence[Place | None]
    now: Mapping[Context, tuple[frozenset[int], Values]]
    start: Place | None = None


class TooManyError(Exception):
    """There are more states than can be looked at."""


class Explained:
    """All ways from a start that explain what is known of a rank.

    Args:
        makers: the steps that are known to make a call, each time.
        stops: where the ranks that are compared are.
        lenient: 1 where those of a library may make several at once, 2 where they may make none as well.

    Attributes:
        starts: the states at the start; leads: state -> label and next state, of those that lead to
            where the rank is.
        told: state -> what numbers were at the start, by each way on from there.
    """

    def __init__(
        self,
        seen: Seen,
        starts: Sequence[tuple[Context, int, bool]],
        makers: frozenset[tuple[Context, int]],
        stops: Sequence[Place],
        lenient: int,
        within: Context | None = None,
    ) -> None:
        self.seen, self.makers, self.lenient, self.within = seen, makers, lenient, within
        self._next: dict[tuple[Context, int], int] = {}
        self._stops = makers | {(place.context, step) for place in stops for step in place.steps}
        first = [
            State(context, step if back else self.next(context, step), back, 0, last, known)
            for context, step, back in starts
            for last in self._last(context, 0)
            for known in [self._at_start(context, step)]
        ]
        every, finals = self._explore(first)
        self.told = _told(every, finals)
        self.leads = {
            state: [(label, to) for label, to in leads if to in self.told]
            for state, leads in every.items()
            if state in self.told
        }
        self.starts = [state for state in first if state in self.told]

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
            or binds(step) & context.flow.asked
        )
        return step.choice is None and len(leads) == 1 and not raises and not matters

    def is_at_rest(self, state: State) -> bool:
        """True where the rank is in a place that another one may have left since: in no collective."""
        last = self.seen.calls[-1]
        waits = state.context.flow.steps[state.step].name in WAITS
        return state.made == len(self.seen.calls) and last is not None and (waits or not last.op)

    # -- exploring

    def _explore(
        self, first: Sequence[State]
    ) -> tuple[dict[State, list[tuple[str, State]]], dict[State, frozenset[Known]]]:
        leads: dict[State, list[tuple[str, State]]] = {}
        finals: dict[State, frozenset[Known]] = {}
        left = [*first]
        while left:
            state = left.pop()
            if state in leads:
                continue
            if len(leads) > MOST_STATES:
                raise TooManyError
            leads[state] = []
            if state.made == len(self.seen.calls):
                solved = self._solved(state)
                finals |= {} if solved is None else {state: frozenset({solved})}
                continue
            leads[state] += self._leads(state)
            left += [to for _, to in leads[state]]
        return leads, finals

    def _solved(self, state: State) -> Known | None:
        """What numbers were at the start, where a state is that in which the rank is; else None."""
        solved = {}
        for (context, name), value in state.values:
            now = next((told for one, told in self.seen.now.items() if one.number == context), None)
            if now is None or name not in now[1] or type(now[1][name]) not in (int, bool):
                continue
            if isinstance(value, Offset):
                solved[value.name] = int(now[1][name] or 0) - value.by
            elif type(value) in (int, bool) and value != now[1][name]:
                return None
        return tuple(sorted(solved.items()))

    def _leads(self, state: State) -> Iterator[tuple[str, State]]:
        context, step = state.context, state.context.flow.steps[state.step]
        if state.step in (EXIT, UNHANDLED):
            yield from self._left(state)
            return
        here = self._makes(state)
        if here is not None and (not state.back or (self.lenient and not is_collective(step.node))):
            held = _held(here)
            values = dict(state.values)
            if all(_may_be(values.get(name), value) for name, value in held.items()):
                after = (
                    tuple(sorted({**values, **held}.items(), key=_by_name))
                    if held and state.made + 1 < len(self.seen.calls)
                    else state.values
                )
                yield f"calls {here.below}", state._replace(back=True, made=state.made + 1, values=after)
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

    def _may_be_silent(self, state: State) -> bool:
        """True for a step that may be passed without one of the calls that are known."""
        if not self.seen.calls[:-1] and not self.makers:
            return True
        if is_collective(state.context.flow.steps[state.step].node):
            return False
        return self.lenient > 1 or (state.context, state.step) not in self.makers

    def _makes(self, state: State) -> Place | None:
        place = self.seen.calls[state.made] if state.made < len(self.seen.calls) else None
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
        values = tuple(item for item in state.values if item[0][0] != context.number)
        for step in context.steps:
            if state.step == EXIT:
                yield "", State(parent, step, True, state.made, state.last, values)
            else:
                there = State(parent, step, True, state.made, state.last, values)
                yield from self._raised(there, parent.flow.steps[step])

    def _entered(self, state: State, child: Context) -> Iterator[tuple[str, State]]:
        given = self._given(state, child)
        values = tuple(sorted([*state.values, *given], key=_by_name))
        for last in self._last(child, state.made, state.last):
            first = self.next(child, ENTRY)
            yield f"enters {child.number}", State(child, first, False, state.made, last, values)

    def _given(self, state: State, child: Context) -> Iterator[tuple[tuple[int, str], Plain | Offset]]:
        """What the arguments of a call are, where they are plain."""
        call = state.context.flow.steps[state.step].node
        arguments = getattr(child.flow.function, "args", None)
        if child.through_library or not isinstance(call, ast.Call) or arguments is None:
            return
        plain = self.values_of(state, call)
        parameters = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        if isinstance(call.func, ast.Attribute) and parameters[:1] == ["self"]:
            parameters = parameters[1:]
        pairs = [*zip(parameters, call.args, strict=False)]
        pairs += [(word.arg, word.value) for word in call.keywords if word.arg is not None]
        for name, given in pairs:
            told = value_of(given, plain)
            if told is not None:
                yield (child.number, name), told[0]

    def _last(self, context: Context, made: int, before: int = 0) -> Iterator[int]:
        """How many functions may be entered for the last time where a context is entered."""
        chain = context.lineage
        surely = context.is_called_once and context in self.seen.now and self._remains_in(context, made)
        if not surely:
            yield before if before < len(chain) else len(chain) - 1
        for depth in range(before + 1, len(chain) + 1):
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
        for label, to in self.ways(state):
            values = self._after(state, step, label)
            if values is not None:
                there = self.next(state.context, to)
                yield label, state._replace(step=there, back=False, values=values)

    # -- values

    def _at_start(self, context: Context, step: int) -> Known:
        found: dict[tuple[int, str], Plain | Offset] = {}
        lineage = context.lineage
        steps = [*(min(inner.steps) for inner in lineage[1:]), step]
        for one, at in zip(lineage, steps, strict=True):
            loops = _loops(one, one.flow.steps[at].first)
            counted = [counter.name for loop in loops for counter in counters(loop)]
            found |= {(one.number, name): Offset((one.number, name), 0) for name in counted}
        if self.seen.start is not None:
            found |= _held(self.seen.start)
        return tuple(sorted(found.items(), key=_by_name))

    def values_of(self, state: State, asked: ast.expr, since: int | None = None) -> dict[str, Plain]:
        """What is known of the names of an expression in a state.

        Args:
            since: the step to which it has led, where that is known.
        """
        found = self._now(state, asked, state.step if since is None else since)
        for (context, name), value in state.values:
            if context == state.context.number and not isinstance(value, Offset):
                found[name] = value
        if self.seen.rank is not None:
            found |= known(asked, self.seen.rank)
        return found

    def _now(self, state: State, asked: ast.expr, since: int) -> dict[str, Plain]:
        """What is read now, and was the same at a step."""
        if state.last < len(state.context.lineage) or state.context not in self.seen.now:
            return {}
        steps, values = self.seen.now[state.context]
        asked_for = {name: values[name] for name in names(asked) if name in values}
        return unchanged(state.context, since, steps, asked_for)

    def ways(self, state: State) -> list[Edge]:
        """Where a step may lead, by what is known, if nothing is raised."""
        step = state.context.flow.steps[state.step]
        edges = [edge for edge in step.edges if edge[0] != RAISED]
        test = step.choice.test if step.choice is not None else None
        if test is not None:
            held = [(edge, truth(test, self.values_of(state, test, edge[1]))) for edge in edges]
            return [edge for edge, holds in held if holds is None or holds is (edge[0] == "yes")]
        goes_on = self._has_next(state, step.choice.statement) if step.choice is not None else None
        return [edge for edge in edges if goes_on is None or goes_on is (edge[0] == "yes")]

    def _has_next(self, state: State, loop: ast.AST) -> bool | None:
        numbers = self._range(state, loop)
        key = (state.context.number, f"#{state.step}")
        turn = dict(state.values).get(key)
        if numbers is None or not isinstance(turn, int):
            return None
        return turn + 1 < len(numbers)

    def _range(self, state: State, loop: ast.AST) -> range | None:
        """The numbers that a loop goes through."""
        through = loop.iter if isinstance(loop, ast.For) else None
        is_range = isinstance(through, ast.Call) and ast.unparse(through.func) == "range"
        if not is_range or not isinstance(through, ast.Call) or through.keywords:
            return None
        told = [value_of(one, self.values_of(state, one)) for one in through.args]
        given = [one[0] for one in told if one is not None and type(one[0]) is int]
        if len(given) != len(through.args) or not given or (len(given) == 3 and given[2] == 0):
            return None
        return range(*(int(one or 0) for one in given))

    def _after(self, state: State, step: Step, label: str) -> Known | None:
        """The values behind a step; None where its loop has been followed far enough."""
        values = dict(state.values)
        me = state.context.number
        node, choice = step.node, step.choice
        bound = binds(step)
        if choice is not None and isinstance(choice.statement, ast.For):
            return self._turn(state, choice.statement, values, label)
        if isinstance(node, ast.For) and counters(node):
            values[(me, f"#{step.edges[0][1]}")] = -1
            return tuple(sorted(values.items(), key=_by_name))
        new: dict[str, Plain | Offset] = {}
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                told = value_of(value, self.values_of(state, value))
                new = {} if told is None else {name: told[0]}
            case ast.AugAssign(
                target=ast.Name(id=name), op=ast.Add(), value=ast.Constant(value=int(more))
            ):
                old = values.get((me, name))
                if isinstance(old, Offset):
                    new = {name: Offset(old.name, old.by + more)}
                elif type(old) is int and old < MOST_TURNS:
                    new = {name: old + more}
        for name in bound:
            values.pop((me, name), None)
        new = {name: value for name, value in new.items() if name in state.context.flow.asked}
        values |= {(me, name): value for name, value in new.items()}
        if any(
            isinstance(one, Offset) and one.by > len(self.seen.calls) + FURTHEST for one in new.values()
        ):
            return None
        return tuple(sorted(values.items(), key=_by_name))

    def _turn(
        self, state: State, loop: ast.For, values: dict[tuple[int, str], Plain | Offset], label: str
    ) -> Known | None:
        me = state.context.number
        key = (me, f"#{state.step}")
        bound = binds(state.context.flow.steps[state.step])
        if label != "yes":
            values.pop(key, None)
            return tuple(sorted(values.items(), key=_by_name))
        turn = values.get(key)
        if isinstance(turn, int):
            values[key] = turn + 1
            if turn > MOST_TURNS:
                for name in (*bound, f"#{state.step}"):
                    values.pop((me, name), None)
                return tuple(sorted(values.items(), key=_by_name))
        numbers = self._range(state, loop)
        counted = {counter.name for counter in counters(loop) if counter.raised is None}
        for name in bound:
            old = values.pop((me, name), None)
            if name not in counted:
                continue
            if isinstance(turn, int) and numbers is not None and turn + 1 < len(numbers):
                values[(me, name)] = numbers[turn + 1]
            elif isinstance(turn, int) and ast.unparse(loop.iter).startswith("enumerate("):
                values[(me, name)] = turn + 1
            elif isinstance(old, Offset):
                if old.by > len(self.seen.calls) + FURTHEST:
                    return None
                values[(me, name)] = Offset(old.name, old.by + 1)
            elif type(old) is int and turn is None:
                values[(me, name)] = old + 1
        return tuple(sorted(values.items(), key=_by_name))


def unchanged(
    context: Context, step: int, now: frozenset[int], values: Mapping[str, Plain]
) -> dict[str, Plain]:
    """Those of some values that were the same at a step, as nothing can have changed them since.

    Args:
        now: the steps at which the rank is in that context.
    """
    flow = context.flow
    bound = frozenset[str]().union(*(flow.bound_between(step, to) for to in now))
    stored = Stored.of(context.frame.text)
    kept = {}
    for name, value in values.items():
        base, *attributes = name.split(".")
        own_ones = base != "self" or attributes[:1] == [] or attributes[0] in stored.at_first
        if base not in bound | stored.names and stored.later.isdisjoint(attributes) and own_ones:
            kept[name] = value
    return kept


def _held(place: Place) -> dict[tuple[int, str], Plain | Offset]:
    """What the functions of a call held then, of the names on which a way may depend."""
    return {
        (context.number, name): value
        for context, _, values in place.values
        for name, value in values.items()
        if name in context.flow.asked and name not in Stored.of(context.frame.text).names
    }


def _may_be(known_value: Plain | Offset, value: Plain | Offset) -> bool:
    """False where a number is known to be another one."""
    numbers = type(known_value) in (int, bool) and type(value) in (int, bool)
    return not numbers or known_value == value


def _by_name(item: tuple[tuple[int, str], object]) -> tuple[int, str]:
    return item[0]


def _told(
    leads: Mapping[State, Sequence[tuple[str, State]]], finals: Mapping[State, frozenset[Known]]
) -> dict[State, frozenset[Known]]:
    """What numbers were at the start, by each way on from a state; of states that lead to the end."""
    before: dict[State, list[State]] = {}
    for state, nexts in leads.items():
        for _, to in nexts:
            before.setdefault(to, []).append(state)
    told = {state: set(one) for state, one in finals.items()}
    left = [*finals]
    while left:
        state = left.pop()
        for one in before.get(state, ()):
            mine = told.setdefault(one, set())
            if not told[state] <= mine:
                mine |= told[state]
                left.append(one)
    return {state: frozenset(one) for state, one in told.items()}


@functools.lru_cache(maxsize=1024)
def _is_handled(context: Context) -> bool:
    """True where a function that has called another one takes an exception of it."""
    parent = context.parent
    if parent is None:
        return False
    return any(parent.flow.steps[n].handlers for n in context.steps) or _is_handled(parent)


@functools.lru_cache(maxsize=4096)
def _loops(context: Context, line: int) -> tuple[ast.stmt, ...]:
    """The loops around a line of a function."""
    return tuple(step.node for step in path(context.flow.function, line) if isinstance(step.node, Loop))
