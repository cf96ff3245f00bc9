"""The statement by which two ranks have come to different lines. No I/O."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...model.frames import Frame
from ...model.parting import Kind
from ...program.blocks import Step, function_of, path
from ...program.syntax import Function, Loop, holds, own_nodes
from ...program.turns import Turns

Stack = Sequence[Frame]
"""Frames, outermost first."""

_KINDS: dict[type[ast.stmt], Kind] = {
    ast.If: "if",
    ast.Match: "match",
    ast.For: "for",
    ast.AsyncFor: "for",
    ast.While: "while",
    ast.Try: "try",
    ast.TryStar: "try",
    ast.With: "with",
    ast.AsyncWith: "with",
}

AFTER = "after it"
IN_FIRST, IN_ELSE = "in its first part", "in its else"

SUPPRESS = ("suppress", "raises")
"""What a `with` calls to go on after an exception, in `contextlib` and in pytest."""

LONGEST_PIECE = 40
"""Characters of a condition that are quoted to name a part."""


@dataclass(frozen=True)
class Parted:
    """A statement that may have led two ranks different ways.

    Attributes:
        frame: in which of the frames, from 0 for the outermost; function: what that frame runs.
        here, there: in which part of it each of both is.
        tests: the conditions that were asked on the way to `here`, with what each was.
        shared: what is repeated around it for both; own: loops that only `here` is in.
        leaves: the loop that it has ended for `there`.
        nested: True where other conditions decide whether it is asked at all.
    """

    kind: Kind
    frame: int
    function: Function = field(repr=False)
    node: ast.stmt | ast.expr = field(repr=False)
    here: str
    there: str
    tests: tuple[tuple[ast.expr, bool], ...] = field(default=(), repr=False)
    shared: tuple[Turns, ...] = field(default=(), repr=False)
    own: tuple[Turns, ...] = field(default=(), repr=False)
    leaves: ast.stmt | None = field(default=None, repr=False)
    nested: bool = False

    def frame_in(self, stack: Stack) -> Frame | None:
        """The frame of a stack that runs its function; None where a rank has left that."""
        frame = stack[self.frame] if len(stack) > self.frame else None
        return frame if frame is not None and function_of(frame) is self.function else None

    @property
    def asked(self) -> tuple[ast.expr, ...]:
        """What decides the way: its conditions, what it goes through, or what its cases match."""
        tests = tuple(test for test, _ in self.tests)
        if isinstance(self.node, ast.For):
            return (*tests, self.node.iter)
        return (*tests, self.node.subject) if isinstance(self.node, ast.Match) else tests

    @property
    def swallows(self) -> bool:
        """True for a `try` or a `with` behind which a rank may go on after an exception."""
        if isinstance(self.node, ast.With | ast.AsyncWith):
            calls = [item.context_expr for item in self.node.items]
            return any(_name(call) in SUPPRESS for call in calls if isinstance(call, ast.Call))
        return isinstance(self.node, ast.Try | ast.TryStar) and bool(self.node.handlers)

    @property
    def may_be_passed(self) -> bool:
        """True for a `try` or a `with`, behind which a rank may simply be further on."""
        aside = isinstance(self.node, ast.Try | ast.TryStar | ast.With | ast.AsyncWith)
        return aside and self.there == AFTER and self.here == "in its body"


@dataclass(frozen=True)
class Ways:
    """All statements that may have led one rank to where it is, and another past it.

    Attributes:
        whole: False where code that cannot be read may have done so as well.
        turned: True when `here` is the second of the two ranks that were asked about.
    """

    found: tuple[Parted, ...]
    whole: bool = True
    turned: bool = False


def ways(one: Stack, other: Stack) -> Ways | None:
    """What may have parted two ranks in one turn of all loops; None where nothing can be said.

    Args:
        one, other: all frames of both, outermost first.
    """
    if _comes_again(one) or _comes_again(other):
        return None
    at = _first_difference(one, other)
    if at is None:
        return _on_one_line(one, other)
    function = function_of(one[at])
    if function is None or function is not function_of(other[at]):
        return None
    mine, its, shared = _apart(one, other, at, function)
    if not mine and not its:
        return None
    if mine and its and mine[0].node is its[0].node:
        found = _in_both(mine[0], its[0], at, function, shared, (one[at].line, other[at].line))
        return None if found is None else Ways((found,))
    turned = _index(mine) > _index(its)
    behind, stack = (its, other) if turned else (mine, one)
    steps = tuple(_within(stack, at, shared, behind))
    return Ways(steps, _is_known(stack, at), turned)


def around(here: Stack, there: Stack) -> Ways:
    """The statements around the lines of one rank, wherever the other one has come to since."""
    if _comes_again(here) or _comes_again(there):
        return Ways(())
    at = sum(
        1 for _ in itertools.takewhile(lambda two: two[0] == two[1], zip(here, there, strict=False))
    )
    if at >= len(here):
        return Ways(())
    function = function_of(here[at])
    if function is None or at >= len(there) or function is not function_of(there[at]):
        return Ways(tuple(_within(here, at, tuple(_repeats(here, at)))), _is_known(here, at))
    mine, _, shared = _apart(here, there, at, function)
    return Ways(tuple(_within(here, at, shared, mine)), _is_known(here, at))


def _is_known(stack: Stack, at: int) -> bool:
    """True when the sources show all that leads from a frame to the innermost line of the user's."""
    users = max((n for n, frame in enumerate(stack) if frame.user), default=at)
    below = stack[at + 1 : users + 1]
    return stack[at].user and all(f.user and function_of(f) is not None for f in below)


def _apart(
    one: Stack, other: Stack, at: int, function: Function
) -> tuple[tuple[Step, ...], tuple[Step, ...], tuple[Turns, ...]]:
    """The statements around each of two lines alone, and what is repeated around both."""
    mine, its = path(function, one[at].line), path(function, other[at].line)
    common = 0
    while common < min(len(mine), len(its)) and mine[common].part and mine[common].within(its[common]):
        common += 1
    loops = [step.node for step in mine[:common] if isinstance(step.node, Loop)]
    shared = (*_repeats(one, at), *(Turns.of_loop(at, loop) for loop in loops))
    return mine[common:], its[common:], shared


def _on_one_line(one: Stack, other: Stack) -> Ways | None:
    """Two ranks are in different calls of one line: of a conditional expression, or one by one."""
    together = [*itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))]
    at = max((n for n, (frame, _) in enumerate(together) if frame.user), default=0)
    function = function_of(one[at]) if together else None
    steps = path(function, one[at].line) if function is not None else ()
    if function is None or not steps or steps[-1].part:
        return None
    loops = [step.node for step in steps if isinstance(step.node, Loop) and step.part == "body"]
    shared = (*_repeats(one, at), *(Turns.of_loop(at, loop) for loop in loops))
    mine, its = ({frame.function for frame in stack[at + 1 :]} for stack in (one, other))
    for node in ast.walk(steps[-1].node):
        if not isinstance(node, ast.IfExp):
            continue
        called = [_called(node.body), _called(node.orelse)]
        came = [[bool(names & inside) for inside in called] for names in (mine, its)]
        if sorted(came) == [[False, True], [True, False]]:
            first = came[0][0]
            sides = (IN_FIRST, IN_ELSE) if first else (IN_ELSE, IN_FIRST)
            return Ways((Parted("ifexp", at, function, node, *sides, ((node.test, first),), shared),))
    calls = [_call_of(steps[-1].node, stack[at + 1 :]) for stack in (one, other)]
    for turned, (first_call, later), stack in ((False, calls, one), (True, calls[::-1], other)):
        if first_call is not None and later is not None and _is_part(first_call, later):
            found = tuple(_within(stack, at + 1, shared))
            below = [frame for frame in stack[at + 1 :] if frame.user]
            return Ways(found, all(function_of(frame) is not None for frame in below), turned)
    return None


def _call_of(statement: ast.stmt, below: Stack) -> ast.Call | None:
    """The call of a statement that has led to a frame, by its name; `__init__` is that of a class."""
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    name = below[0].function if below and below[0].user else ""
    named = [
        call
        for call in calls
        if _name(call) == name or (name == "__init__" and _name(call)[:1].isupper())
    ]
    return named[0] if len(named) == 1 else None


def _is_part(call: ast.Call, other: ast.Call) -> bool:
    """True for a call that is evaluated before another one, of which it is a part."""
    return call is not other and any(node is call for node in ast.walk(other))


def _name(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _called(expression: ast.expr) -> set[str]:
    """The names of the functions that an expression calls."""
    return {_name(node) for node in ast.walk(expression) if isinstance(node, ast.Call)} - {""}


def _index(steps: Sequence[Step]) -> float:
    """The place of a line's statement among its neighbours; behind all of them for a rank at the end."""
    return steps[0].index if steps else math.inf


def has_passed(one: Stack, other: Stack) -> bool:
    """True where `one` has run the line at which `other` is: nothing can have led it past, or back."""
    found, at = ways(one, other), _first_difference(one, other)
    function = function_of(one[at]) if at is not None else None
    if found is None or at is None or function is None:
        return False
    *_, repeated = _apart(one, other, at, function)
    return found.whole and found.turned and not found.found and not repeated


def went_aside(one: Stack, other: Stack) -> bool:
    """True when `one` is inside a statement, in a function that `other` runs outside of it."""
    at = _first_difference(one, other)
    function = function_of(one[at]) if at is not None else None
    if at is None or function is None:
        return False
    here, there = (
        [step for step in path(function, stack[at].line) if step.part] for stack in (one, other)
    )
    inside = len(here) > len(there)
    return inside and all(mine.within(its) for mine, its in zip(here, there, strict=False))


def _first_difference(one: Stack, other: Stack) -> int | None:
    """The outermost frames that run one function at different lines."""
    for at, (here, there) in enumerate(zip(one, other, strict=False)):
        if here != there:
            same = (here.file, here.function, here.text) == (there.file, there.function, there.text)
            return at if same else None
    return None


def _comes_again(stack: Stack) -> bool:
    """True for a function of the user's that has called itself."""
    own = [(frame.file, frame.function) for frame in stack if frame.user]
    return len(set(own)) < len(own)


def _repeats(stack: Stack, until: int) -> Iterator[Turns]:
    """What is repeated around the line of a frame by the frames that lead to it."""
    users = [at for at, frame in enumerate(stack[: until + 1]) if frame.user]
    for before, at in zip([None, *users], users, strict=False):
        function = function_of(stack[at])
        if function is not None and before is not None and before + 1 < at:
            yield Turns.of_calls(at, function)
        for step in path(function, stack[at].line) if function is not None and at < until else ():
            if isinstance(step.node, Loop) and step.part == "body":
                yield Turns.of_loop(at, step.node)


def _in_both(
    here: Step,
    there: Step,
    at: int,
    function: Function,
    shared: tuple[Turns, ...],
    lines: tuple[int, int],
) -> Parted | None:
    """Both are in one statement, in different parts of it."""
    node = here.node
    kind = _KINDS.get(type(node))
    if kind is None or "" in (here.part, there.part):
        expression = _conditional(node, lines) if here.part == there.part == "" else None
        if expression is None:
            return None
        first = holds(expression.body, lines[0])
        mine, its = (IN_FIRST, IN_ELSE) if first else (IN_ELSE, IN_FIRST)
        tests = ((expression.test, first),)
        return Parted("ifexp", at, function, expression, mine, its, tests, shared)
    parts = {here.part, there.part}
    progress = isinstance(node, ast.Try | ast.TryStar) and not any("handler" in part for part in parts)
    if progress or isinstance(node, ast.With | ast.AsyncWith):
        return None
    mine, its = label(node, here.part), label(node, there.part)
    return Parted(kind, at, function, node, mine, its, here.tests, shared)


def _within(
    stack: Stack, at: int, shared: tuple[Turns, ...], steps: tuple[Step, ...] | None = None
) -> Iterator[Parted]:
    """The statements around a line that another rank is not in, and what leaves them early.

    Args:
        stack: of the rank that is in them; at: the first of its frames that matters.
        steps: around the line of that frame, where the other rank is in the same function.
    """
    own: tuple[Turns, ...] = ()
    for depth, frame in enumerate(stack[at:]):
        function = function_of(frame)
        if function is None:
            continue
        together = depth == 0 and steps is not None
        around = steps if together and steps is not None else path(function, frame.line)
        for step in around:
            kind = _KINDS.get(type(step.node))
            if kind is not None and step.part:
                way = label(step.node, step.part)
                yield Parted(kind, at + depth, function, step.node, way, AFTER, step.tests, shared, own)
            if isinstance(step.node, Loop) and step.part == "body":
                own = (*own, Turns.of_loop(at + depth, step.node))
        yield from _left_early(function, around, frame.line, at + depth, not together, shared, own)


def _left_early(
    function: Function,
    around: Sequence[Step],
    line: int,
    frame: int,
    left: bool,
    shared: tuple[Turns, ...],
    own: tuple[Turns, ...],
) -> Iterator[Parted]:
    """Statements that leave the function, or a loop around a line, before it or in an earlier turn."""
    loops = [step.node for step in around if isinstance(step.node, Loop) and step.part == "body"]
    on_the_way = {id(step.node) for step in around}
    for node in own_nodes(function):
        if not isinstance(node, ast.Return | ast.Break | ast.Continue):
            continue
        guards = path(function, node.lineno)
        inside = [step.node for step in guards if isinstance(step.node, Loop) and step.part == "body"]
        returns = isinstance(node, ast.Return)
        repeated = any(loop in loops for loop in (inside if returns else inside[-1:]))
        before = node.lineno < line or (repeated and not isinstance(node, ast.Continue))
        if not before or not (left if returns else repeated):
            continue
        at = next(
            (n for n, s in reversed([*enumerate(guards)][:-1]) if isinstance(s.node, ast.If)), None
        )
        if at is None or id(guards[at].node) in on_the_way:
            continue
        guard, outer = guards[at], guards[:at]
        conditional = any(id(step.node) not in on_the_way and _may_be_left_out(step) for step in outer)
        nested = conditional or len(guard.tests) > 1
        tests = () if nested else tuple((test, not held) for test, held in guard.tests)
        kind, named = ("return", node) if returns else (_KINDS[type(guard.node)], guard.node)
        ways = ("went on", "returned") if returns else (AFTER, label(guard.node, guard.part))
        leaves = inside[-1] if isinstance(node, ast.Break) else None
        yield Parted(kind, frame, function, named, *ways, tests, shared, own, leaves, nested)


def _may_be_left_out(step: Step) -> bool:
    return bool(step.part) and not isinstance(step.node, ast.With)


def _conditional(statement: ast.stmt, lines: tuple[int, int]) -> ast.IfExp | None:
    """The innermost conditional expression of which two lines are in different parts."""
    found = None
    for node in ast.walk(statement):
        if isinstance(node, ast.IfExp):
            sides = [(holds(node.body, line), holds(node.orelse, line)) for line in lines]
            if sorted(sides) == [(False, True), (True, False)]:
                found = node
    return found


def label(node: ast.AST, part: str) -> str:
    """A part of a statement in words: `in its body`, `in its except ValueError`."""
    name, _, number = part.partition(" ")
    if name == "handler" and isinstance(node, ast.Try | ast.TryStar):
        kind = node.handlers[int(number)].type
        return _said("in its except", kind)
    if name == "case" and isinstance(node, ast.Match):
        return _said("in its case", node.cases[int(number)].pattern)
    if name == "elif":
        for _ in range(int(number)):
            node = node.orelse[0] if isinstance(node, ast.If) else node
        return _said("in its elif", getattr(node, "test", None))
    return f"in its {name}"


def _said(words: str, node: ast.AST | None) -> str:
    """The words, and a piece of the source if it is short."""
    piece = "" if node is None else ast.unparse(node)
    return f"{words} {piece}" if 0 < len(piece) <= LONGEST_PIECE else words
