"""What is known of the variables of a rank at each state of its way. No I/O."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterator, Mapping, Set

from ...program.blocks import path
from ...program.condition import names, subject, truth, value_of
from ...program.flow import RAISED, Edge, Step, binds
from ...program.identity import of_rank
from ...program.stored import Stored
from ...program.syntax import Loop, Plain, dotted
from ...program.turns import counters, length_of
from .contexts import Context, Place
from .state import Known, Name, Observation, Offset, State

MOST_TURNS = 400
"""Turns of a loop that are counted."""

FURTHEST = 4
"""Turns of a loop that are followed without a call that is known, or a number that is."""


class Environment:
    """What is known of the variables of a rank."""

    def __init__(self, observation: Observation) -> None:
        self.observation = observation
        self.begin: dict[Name, int] = {}

    def at_start(self, context: Context, step: int, last: int) -> Known:
        """What is known at the start: what the call made there held, and what counts loops.

        Args:
            last: how many of the functions around it have been entered for the last time.
        """
        values: dict[Name, Plain | Offset] = {}
        lineage = context.lineage
        steps = [*(min(inner.steps) for inner in lineage[1:]), step]
        for outer, at in zip(lineage, steps, strict=True):
            loops = _loops(outer, outer.flow.steps[at].first)
            counted = [counter.name for loop in loops for counter in counters(loop)]
            values |= {(outer.number, name): Offset((outer.number, name), 0) for name in counted}
        for parent, child in itertools.pairwise(lineage):
            caller = State(parent, min(child.steps), False, 0, last, frozenset(values.items()))
            values |= dict(self.arguments(caller, child))
        if self.observation.start is not None:
            values |= values_at_call(self.observation.start)
        values |= {(context.number, name): value for name, value in self.observation.counted.items()}
        self.begin = {name: value for name, value in values.items() if type(value) is int}
        return frozenset(values.items())

    def solved(self, state: State) -> frozenset[Known]:
        """What numbers were at the start, where a state agrees with what is read now; else nothing."""
        now = {
            (context.number, name): value
            for context, (_, values) in self.observation.now.items()
            for name, value in values.items()
            if type(value) in (int, bool)
        }
        solved: dict[Name, Plain | Offset] = {}
        for name, value in state.values:
            if isinstance(value, Offset) and name in now:
                solved[value.name] = int(now[name] or 0) - value.by
            elif not may_be(now.get(name), value):
                return frozenset()
        return frozenset({frozenset(solved.items())})

    def values_of(
        self, state: State, expression: ast.expr, bound: Set[str] | None = None
    ) -> dict[str, Plain]:
        """What is known of the names of an expression in a state.

        Args:
            bound: the names that the rank may have bound since; None where its way is not known yet.
        """
        values = self.now(state, expression, self._bound_since(state) if bound is None else bound)
        for (context, name), value in state.values:
            if context == state.context.number and not isinstance(value, Offset):
                values[name] = value
        if self.observation.rank is not None:
            values = {**of_rank(expression, self.observation.rank, state.context.frame.text), **values}
        return values

    def now(self, state: State, expression: ast.expr, bound: Set[str]) -> dict[str, Plain]:
        """What is read now, and was the same in a state."""
        if state.last < len(state.context.lineage) or state.context not in self.observation.now:
            return {}
        _, values = self.observation.now[state.context]
        read = {name: values[name] for name in names(expression) if name in values}
        return unchanged(state.context, read, bound)

    def _of_self(self, state: State) -> dict[str, Plain]:
        """What is known of the object whose method it is."""
        now, fields = self.observation.now.get(state.context, (frozenset(), {}))[1], {}
        if state.last >= len(state.context.lineage):
            fields = unchanged(state.context, now, self._bound_since(state))
        fields = {
            **fields,
            **{
                name: value
                for (me, name), value in state.values
                if me == state.context.number and not isinstance(value, Offset)
            },
        }
        return {name: value for name, value in fields.items() if _variable(name) == "self" != name}

    def _bound_since(self, state: State, step: int | None = None) -> frozenset[str]:
        """The names that may be bound on a way from a state, or a later step, to where the rank is."""
        steps, _ = self.observation.now.get(state.context, (frozenset[int](), {}))
        return state.context.flow.bound_between(state.step if step is None else step, steps)

    def ways(self, state: State) -> list[Edge]:
        """Where a step may lead, by what is known, if nothing is raised."""
        step = state.context.flow.steps[state.step]
        edges = [edge for edge in step.edges if edge[0] != RAISED]
        test = step.choice.test if step.choice is not None else None
        if test is not None:
            answers = [
                (edge, truth(test, self.values_of(state, test, self._bound_since(state, edge[1]))))
                for edge in edges
            ]
            return [edge for edge, holds in answers if holds is None or holds is (edge[0] == "yes")]
        goes_on = self._has_next(state, step.choice.statement) if step.choice is not None else None
        return [edge for edge in edges if goes_on is None or goes_on is (edge[0] == "yes")]

    def _has_next(self, state: State, loop: ast.AST) -> bool | None:
        """Whether a loop goes on; None where that is not known."""
        if not isinstance(loop, ast.For):
            return None
        turn, numbers = self._turns(state, loop)
        return None if numbers is None or turn is None else turn + 1 < len(numbers)

    def _turns(self, state: State, loop: ast.For) -> tuple[int | None, range | None]:
        """The turn of a loop, from 0, -1 before the first, and the numbers that it goes through."""
        values, me = dict(state.values), state.context.number
        numbers, turn = self._range(state, loop), values.get((me, f"#{state.step}"))
        if type(turn) is int:
            return turn, numbers
        for counter in counters(loop):
            value = values.get((me, counter.name))
            if counter.raised is None and type(value) is int:
                if numbers is not None:
                    return (numbers.index(value) if value in numbers else None), numbers
                first = self._first(state, loop)
                return (value - first if first is not None else None), None
        return None, numbers

    def _first(self, state: State, loop: ast.For) -> int | None:
        """The number of the first turn of a loop that counts up, one by one."""
        call = loop.iter
        if not isinstance(call, ast.Call) or len(call.args) + len(call.keywords) > 2:
            return None
        arguments = [*call.args, *(word.value for word in call.keywords if word.arg == "start")]
        if len(arguments) == 1:
            return 0 if not call.keywords else None
        begin = arguments[0] if ast.unparse(call.func) == "range" else arguments[1]
        start = value_of(begin, self.values_of(state, begin))
        return start[0] if start is not None and type(start[0]) is int else None

    def length(self, state: State, through: ast.expr) -> int | None:
        """How many items something has that a loop may go through; None where that is not known."""
        size = self._read_length(state, through)
        numbers = self._numbers(state, through) if size is None else None
        return size if numbers is None else len(numbers)

    def _read_length(self, state: State, through: ast.expr) -> int | None:
        expression = length_of(through)
        value = (
            value_of(expression, self.values_of(state, expression)) if expression is not None else None
        )
        return value[0] if value is not None and type(value[0]) is int else None

    def _range(self, state: State, loop: ast.AST) -> range | None:
        """The numbers that a loop goes through, or those that `enumerate` gives its items."""
        if not isinstance(loop, ast.For):
            return None
        length = self._read_length(state, loop.iter)
        first = self._first(state, loop) if length is not None else None
        if length is not None and first is not None:
            return range(first, first + length)
        return self._numbers(state, loop.iter)

    def _numbers(self, state: State, through: ast.expr) -> range | None:
        """The numbers of a `range`, where they are known."""
        is_range = isinstance(through, ast.Call) and ast.unparse(through.func) == "range"
        if not is_range or not isinstance(through, ast.Call) or through.keywords:
            return None
        arguments = [value_of(argument, self.values_of(state, argument)) for argument in through.args]
        bounds = [
            argument[0] for argument in arguments if argument is not None and type(argument[0]) is int
        ]
        if len(bounds) != len(through.args) or not bounds or (len(bounds) == 3 and bounds[2] == 0):
            return None
        return range(*(int(bound or 0) for bound in bounds))

    def after(self, state: State, step: Step, label: str) -> Known | None:
        """The values behind a step; None where its loop has been followed far enough."""
        values = dict(state.values)
        me = state.context.number
        node, choice = step.node, step.choice
        if choice is not None and isinstance(choice.statement, ast.For):
            return self._turn(state, choice.statement, values, label)
        if isinstance(node, ast.For) and counters(node):
            values[(me, f"#{step.edges[0][1]}")] = -1
            return frozenset(values.items())
        new = self._assignment(state, node, values)
        _forget(values, me, binds(step))
        new = {name: value for name, value in new.items() if name in state.context.flow.condition_names}
        values |= {(me, name): value for name, value in new.items()}
        furthest = len(self.observation.calls) + FURTHEST
        if any(isinstance(value, Offset) and value.by > furthest for value in new.values()):
            return None
        return frozenset(values.items())

    def _assignment(
        self, state: State, node: ast.AST | None, values: Mapping[Name, Plain | Offset]
    ) -> dict[str, Plain | Offset]:
        """The name that a statement binds to a constant, or counts up, with its value."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                constant = value_of(value, self.values_of(state, value))
                return {} if constant is None else {name: constant[0]}
            case ast.AugAssign(
                target=ast.Name(id=name), op=ast.Add(), value=ast.Constant(value=int(more))
            ):
                old = values.get((state.context.number, name))
                if isinstance(old, Offset):
                    return {name: Offset(old.name, old.by + more)}
                if type(old) is int and old < MOST_TURNS:
                    return {name: old + more}
        return {}

    def _turn(
        self, state: State, loop: ast.For, values: dict[Name, Plain | Offset], label: str
    ) -> Known | None:
        me = state.context.number
        key = (me, f"#{state.step}")
        bound = binds(state.context.flow.steps[state.step])
        turn, numbers = self._turns(state, loop)
        if label != "yes":
            values.pop(key, None)
            for counter in counters(loop):
                if numbers and counter.raised is None:  # it ends with the last of its numbers
                    values[me, counter.name] = numbers[-1]
            return frozenset(values.items())
        if turn is not None and turn > MOST_TURNS:
            for name in (*bound, key[1]):
                values.pop((me, name), None)
            return frozenset(values.items())
        if turn is not None:
            values[key] = turn + 1
        counted = {counter.name for counter in counters(loop) if counter.raised is None}
        _forget(values, me, bound - counted)
        for name in bound:
            old = values.pop((me, name), None)
            if name not in counted:
                continue
            value = _turn_number(turn, numbers, self._first(state, loop), old)
            if value is not None:
                values[me, name] = value
            if self._is_far((me, name), value) or self._is_over(state, loop, name, value):
                return None
        return frozenset(values.items())

    def _is_over(self, state: State, loop: ast.For, name: str, value: Plain | Offset) -> bool:
        """True where a loop that is run once has counted further than it has now.

        At the start its first turn may still be to come.
        """
        _, read = self.observation.now.get(state.context, (frozenset(), {}))
        now = read.get(name)
        if type(now) is not int or now < 0 or state.last < len(state.context.lineage):
            return False
        by = value.by - 1 if isinstance(value, Offset) else value
        around = [
            step for step in path(state.context.flow.function, loop.lineno) if step.node is not loop
        ]
        nested = any(isinstance(step.node, Loop) for step in around)
        return type(by) is int and by > now and not nested

    def _is_far(self, name: Name, value: Plain | Offset) -> bool:
        """True where a loop has been followed for long, and no call has been made there."""
        begin = self.begin.get(name)
        by = value.by if isinstance(value, Offset) else 0
        if type(value) is int and begin is not None:
            by = value - begin
        return by > len(self.observation.calls) + FURTHEST

    def arguments(self, state: State, child: Context) -> Iterator[tuple[Name, Plain | Offset]]:
        """What the arguments of a call are, where they are plain."""
        call = state.context.flow.steps[state.step].node
        signature = getattr(child.flow.function, "args", None)
        if child.through_library or not isinstance(call, ast.Call) or signature is None:
            return
        plain = self.values_of(state, call)
        parameters = [parameter.arg for parameter in (*signature.posonlyargs, *signature.args)]
        if isinstance(call.func, ast.Attribute) and parameters[:1] == ["self"]:
            parameters = parameters[1:]
        pairs = [*zip(parameters, call.args, strict=False)]
        pairs += [(word.arg, word.value) for word in call.keywords if word.arg is not None]
        for name, expression in pairs:
            constant = value_of(expression, plain)
            if constant is not None:
                yield (child.number, name), constant[0]
            size = self.length(state, expression)
            if size is not None:
                yield (child.number, f"len({name})"), size
        if isinstance(call.func, ast.Attribute) and dotted(call.func.value) == "self":
            for name, value in self._of_self(state).items():
                if _is_asked(child, name):
                    yield (child.number, name), value


def _turn_number(
    turn: int | None, numbers: range | None, first: int | None, old: Plain | Offset
) -> int | Offset | None:
    """The number of the turn after one, by what a loop goes through, else by the number before."""
    if turn is not None and numbers is not None:
        return numbers[turn + 1]
    if turn is not None and first is not None:
        return first + turn + 1
    if isinstance(old, Offset):
        return Offset(old.name, old.by + 1)
    return old + 1 if type(old) is int else None


def unchanged(context: Context, values: Mapping[str, Plain], bound: Set[str]) -> dict[str, Plain]:
    """Those of some values that were the same before, as nothing can have changed them since.

    Args:
        bound: the names that the function may have bound since.
    """
    stored = Stored.of(context.frame.text)
    return {
        name: value
        for name, value in values.items()
        if _variable(name) not in bound and not stored.may_change(name)
    }


def values_at_call(place: Place) -> dict[Name, Plain | Offset]:
    """What the functions of a call held then, of the names on which a way may depend."""
    return {
        (context.number, name): value
        for context, _, values in place.values
        for name, value in values.items()
        if _is_asked(context, name)
    }


def _is_asked(context: Context, name: str) -> bool:
    stored = Stored.of(context.frame.text)
    if subject(name) == name:
        return name in context.flow.condition_names and name not in stored.names
    return _variable(name) in context.flow.condition_names and not stored.may_change(name)


def _forget(values: dict[Name, Plain | Offset], number: int, bound: Set[str]) -> None:
    """Take away what is known of variables of a context, and of what they hold."""
    for key in [key for key in values if key[0] == number and _variable(key[1]) in bound]:
        values.pop(key)


def _variable(name: str) -> str:
    """The variable of which a name begins: `self` of `self.step` and of `len(self.loader)`."""
    return subject(name).partition(".")[0]


def may_be(known_value: Plain | Offset, value: Plain | Offset) -> bool:
    """False where a number is known to be another one."""
    numbers = type(known_value) in (int, bool) and type(value) in (int, bool)
    return not numbers or known_value == value


@functools.lru_cache(maxsize=4096)
def _loops(context: Context, line: int) -> tuple[ast.stmt, ...]:
    """The loops around a line of a function."""
    return tuple(step.node for step in path(context.flow.function, line) if isinstance(step.node, Loop))
