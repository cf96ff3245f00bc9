"""The flow of control of a function: its steps, and where each may lead. No I/O."""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

import msgspec

from .blocks import label_of_part, parts
from .syntax import Function, called_name, dotted
from .turns import length_of

Kind = Literal["if", "match", "ifexp", "while", "for", "try", "with", "return"]

RAISED = "raised"
"""The label of the way that an exception takes."""

SUPPRESS = ("suppress", "raises")
"""What a `with` calls to go on after an exception, in `contextlib` and in pytest."""

Edge = tuple[str, int]
"""Label and number of the step to which a step may lead; the label is empty where there is no choice."""


class Choice(msgspec.Struct, frozen=True):
    """What a step decides.

    Attributes:
        kind: of the statement; statement: that statement, or the conditional expression.
        test: the condition that is asked, if it is one; the labels `yes` and `no` say what it was.
        ways: label of an edge -> what a reader calls that way, as `in its body`.
    """

    kind: Kind
    statement: ast.stmt | ast.expr
    test: ast.expr | None = None
    ways: dict[str, str] = msgspec.field(default_factory=dict)


AFTER = "after it"


def asked_by(choice: Choice) -> tuple[ast.expr, ...]:
    """What decides the way: a condition, what a loop goes through, or what cases match."""
    if choice.test is not None:
        return (choice.test,)
    statement = choice.statement
    if isinstance(statement, ast.For):
        length = length_of(statement.iter)
        return (statement.iter,) if length is None else (statement.iter, length)
    return (statement.subject,) if isinstance(statement, ast.Match) else ()


@dataclass(frozen=True, eq=False)
class Step:
    """One step of a function: a call, the rest of a statement, or a choice.

    Attributes:
        node: what is evaluated: a call, a condition, or a statement whose calls are steps of their own.
        first, last: its lines.
        name: of the function that it calls; empty for what is no call.
        choice: what it decides, apart from an exception.
        handlers: the `try` or `with` that takes an exception of it, in this function.
    """

    node: ast.AST | None
    first: int = 0
    last: int = 0
    name: str = ""
    choice: Choice | None = None
    handlers: ast.stmt | None = None
    edges: list[Edge] = field(default_factory=list, repr=False)

    def calls(self, function: str) -> bool:
        """True for a call of a function, by its name; `__init__` is that of a class."""
        by_class = function == "__init__" and self.name[:1].isupper()
        return bool(self.name) and (self.name == function or by_class)


class _Around(msgspec.Struct, frozen=True):
    """Where the statements of a block lead that do not go on to the next one."""

    returns: int
    raises: int
    handlers: ast.stmt | None = None
    breaks: int = -1
    continues: int = -1


ENTRY, EXIT, UNHANDLED = 0, 1, 2
"""The numbers of the steps at which a function begins, ends, and is left by an exception."""


class Flow:
    """The steps of a function.

    Attributes:
        steps: all of them; the edges of each lead to others by their numbers.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.steps = [Step(None), Step(None), Step(None)]
        self._bound: dict[tuple[int, frozenset[int]], frozenset[str]] = {}
        first = self._block(function.body, EXIT, _Around(EXIT, UNHANDLED))
        self.steps[ENTRY].edges.append(("", first))

    def at(self, line: int, names: Sequence[str] = ()) -> frozenset[int]:
        """The steps that are at a line: those that call the first of some functions, else the last ones.

        There are several where a `finally` is run on several ways, or one function is called twice.
        """
        at_line = [n for n, step in enumerate(self.steps) if step.first <= line <= step.last]
        calls = [n for n in at_line if self.steps[n].name]
        by_name = ([n for n in calls if self.steps[n].calls(name)] for name in names)
        calling = next((steps for steps in by_name if steps), [])
        heads = [n for n in at_line if self.steps[n].choice is not None]
        among = calling or self._last_of(calls or heads or at_line)
        lines = {n: self.steps[n].last - self.steps[n].first for n in among}
        return frozenset(n for n in among if lines[n] == min(lines.values()))

    def _last_of(self, steps: Sequence[int]) -> list[int]:
        """The steps that lead to none of the others at once."""
        return [
            n
            for n in steps
            if not any(to in steps for label, to in self.steps[n].edges if label != RAISED)
        ]

    def merge(self, step: int, raised: bool) -> int:
        """The step at which all ways of a step come together again: its postdominator.

        Args:
            raised: True where an exception that is handled here may be raised on the ways; else they
                are left out, as they would lead everywhere.
        """
        return (self._merges_of_all if raised else self._merges)[step]

    @functools.cached_property
    def _merges(self) -> list[int]:
        return _postdominators(
            [[to for label, to in step.edges if label != RAISED] for step in self.steps]
        )

    @functools.cached_property
    def _merges_of_all(self) -> list[int]:
        return _postdominators([[to for _, to in step.edges if to != UNHANDLED] for step in self.steps])

    @functools.cached_property
    def condition_names(self) -> frozenset[str]:
        """The names on which a way may depend: those of conditions, of loops, and of arguments."""
        names: set[str] = set()
        for step in self.steps:
            if (step.choice is not None and step.node is not None) or isinstance(step.node, ast.Call):
                names |= {node.id for node in ast.walk(step.node) if isinstance(node, ast.Name)}
        return frozenset(names)

    @functools.cached_property
    def _reaches(self) -> list[frozenset[int]]:
        """For each step those to which it may lead, itself only where it comes back."""
        after = [{to for _, to in step.edges} for step in self.steps]
        changed = True
        while changed:
            changed = False
            for targets in after:
                more = set().union(*(after[to] for to in targets)) - targets
                changed = changed or bool(more)
                targets |= more
        return [frozenset(targets) for targets in after]

    def deciding(self, statement: ast.stmt | ast.expr | None) -> frozenset[int]:
        """The steps at which it is decided which way of a statement is taken: several in a `finally`."""
        return frozenset(
            number
            for number, step in enumerate(self.steps)
            if step.choice is not None and step.choice.statement is statement
        )

    def leads(
        self,
        start: int,
        to: Collection[int],
        without: Collection[int] = (),
        closed: Mapping[int, str] = MappingProxyType({}),
    ) -> bool:
        """True where a way leads from a step to one of others, not through some, nor along some edges.

        Args:
            closed: step -> the label of the edge by which nobody leaves it.
        """
        pending, visited = [start], {*without}
        while pending:
            step = pending.pop()
            for label, after in self.steps[step].edges:
                if label == closed.get(step):
                    continue
                if after in to and after not in without:
                    return True
                if after not in visited:
                    visited.add(after)
                    pending.append(after)
        return False

    def bound_between(self, start: int, ends: frozenset[int]) -> frozenset[str]:
        """The names that may be bound on a way from one step to any of others."""
        if (start, ends) not in self._bound:
            between = {n for n in (start, *self._reaches[start]) if ends & self._reaches[n]}
            self._bound[start, ends] = frozenset(name for n in between for name in binds(self.steps[n]))
        return self._bound[start, ends]

    # -- how it is made: from the end to the start, each statement knowing where it leads

    def _new(self, step: Step, *edges: Edge, around: _Around | None = None) -> int:
        step.edges.extend(edges)
        if around is not None and step.node is not None:
            step.edges.append((RAISED, around.raises))
        self.steps.append(step)
        return len(self.steps) - 1

    def _step(self, node: ast.stmt | ast.expr, to: int, around: _Around, name: str = "") -> int:
        lines = (node.lineno, node.end_lineno or node.lineno)
        step = Step(node, *lines, name=name, handlers=around.handlers)
        may_raise = bool(name) or around.handlers is not None
        return self._new(step, ("", to), around=around if may_raise else None)

    def _choose(self, choice: Choice, at: ast.expr, *edges: Edge) -> int:
        step = Step(at, at.lineno, at.end_lineno or at.lineno, choice=choice)
        return self._new(step, *edges)

    def _block(self, block: Sequence[ast.stmt], to: int, around: _Around) -> int:
        for statement in reversed(block):
            to = self._statement(statement, to, around)
        return to

    def _statement(self, node: ast.stmt, to: int, around: _Around) -> int:
        match node:
            case ast.If():
                return self._if(node, to, around)
            case ast.While() | ast.For() | ast.AsyncFor():
                return self._loop(node, to, around)
            case ast.With() | ast.AsyncWith():
                return self._with(node, to, around)
            case ast.Try() | ast.TryStar():
                return self._try(node, to, around)
            case ast.Match():
                return self._match(node, to, around)
            case ast.Return():
                to = self._step(node, around.returns, around)
                return self._expressions(node, to, around)
            case ast.Raise():
                step = Step(node, node.lineno, node.end_lineno or node.lineno, handlers=around.handlers)
                return self._expressions(node, self._new(step, (RAISED, around.raises)), around)
            case ast.Break() | ast.Continue():
                to = around.breaks if isinstance(node, ast.Break) else around.continues
                return self._new(Step(node, node.lineno, node.lineno), ("", to))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return self._new(Step(node, node.lineno, node.lineno), ("", to))
        return self._expressions(node, self._step(node, to, around), around)

    def _if(self, node: ast.If, to: int, around: _Around) -> int:
        """An `if` with all its `elif`, which are one statement for a reader."""
        after = "in its else" if _has_else(node) else AFTER
        otherwise = to
        for part, block, conditions in reversed([*parts(node)]):
            if part == "else":
                otherwise = self._block(block, to, around)
                continue
            test = conditions[-1][0]
            ways = {"yes": label_of_part(node, part), "no": after}
            choice = Choice("if", node, test, ways)
            inside = self._block(block, to, around)
            head = self._choose(choice, test, ("yes", inside), ("no", otherwise))
            otherwise = self._expressions(test, head, around)
        return otherwise

    def _loop(self, node: ast.While | ast.For | ast.AsyncFor, to: int, around: _Around) -> int:
        is_while = isinstance(node, ast.While)
        expression = node.test if isinstance(node, ast.While) else node.iter
        ways = {"yes": "in its body", "no": AFTER}
        choice = Choice("while" if is_while else "for", node, expression if is_while else None, ways)
        head = self._choose(choice, expression)
        again = self._expressions(expression, head, around) if is_while else head
        inner = _Around(around.returns, around.raises, around.handlers, breaks=to, continues=again)
        body = self._block(node.body, again, inner)
        orelse = self._block(node.orelse, to, around)
        self.steps[head].edges.extend((("yes", body), ("no", orelse)))
        if is_while:
            return again
        begins = self._new(Step(node, node.lineno, expression.end_lineno or node.lineno), ("", head))
        return self._expressions(expression, begins, around)

    def _with(self, node: ast.With | ast.AsyncWith, to: int, around: _Around) -> int:
        calls = [item.context_expr for item in node.items]
        suppresses = any(called_name(call) in SUPPRESS for call in calls if isinstance(call, ast.Call))
        inner = around
        if suppresses:
            inner = _Around(around.returns, to, node, around.breaks, around.continues)
        body = self._block(node.body, to, inner)
        last = calls[-1].end_lineno or node.lineno
        entered = self._new(Step(node, node.lineno, last), ("", body))
        for call in reversed(calls):
            entered = self._expressions(call, entered, around)
        return entered

    def _try(self, node: ast.Try | ast.TryStar, to: int, around: _Around) -> int:
        def through(target: int) -> int:
            return self._block(node.finalbody, target, around) if target >= 0 else target

        out = around
        if node.finalbody:
            out = _Around(
                through(around.returns),
                through(around.raises),
                around.handlers,
                through(around.breaks),
                through(around.continues),
            )
            to = through(to)
        inner = out
        if node.handlers:
            ways = {
                f"handler {n}": label_of_part(node, f"handler {n}") for n in range(len(node.handlers))
            }
            edges = [
                (f"handler {n}", self._block(handler.body, to, out))
                for n, handler in enumerate(node.handlers)
            ]
            if not any(_takes_all(handler) for handler in node.handlers):
                edges.append(("none", out.raises))
            dispatch = self._new(Step(None, choice=Choice("try", node, None, ways)), *edges)
            inner = _Around(out.returns, dispatch, node, out.breaks, out.continues)
        return self._block(node.body, self._block(node.orelse, to, out), inner)

    def _match(self, node: ast.Match, to: int, around: _Around) -> int:
        ways = {f"case {n}": label_of_part(node, f"case {n}") for n in range(len(node.cases))}
        edges = [(f"case {n}", self._block(case.body, to, around)) for n, case in enumerate(node.cases)]
        last = node.cases[-1]
        if last.guard is not None or not isinstance(last.pattern, ast.MatchAs) or last.pattern.pattern:
            edges.append(("no", to))
        head = self._choose(Choice("match", node, None, ways), node.subject, *edges)
        return self._expressions(node.subject, head, around)

    def _expressions(self, node: ast.AST, to: int, around: _Around) -> int:
        """The calls in an expression or a simple statement, in the order in which they are made."""
        match node:
            case ast.IfExp() if _calls(node.body) or _calls(node.orelse):
                ways = {"yes": "in its first part", "no": "in its else"}
                edges = [
                    ("yes", self._expressions(node.body, to, around)),
                    ("no", self._expressions(node.orelse, to, around)),
                ]
                head = self._choose(Choice("ifexp", node, node.test, ways), node.test, *edges)
                return self._expressions(node.test, head, around)
            case ast.BoolOp() if any(map(_calls, node.values[1:])):
                return self._one_after_other(node, to, around)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp() if _calls(node):
                return self._comprehension(node, to, around)
            case ast.Lambda() | ast.FunctionDef() | ast.ClassDef():
                return to
            case ast.Call():
                to = self._step(node, to, around, called_name(node).rpartition(".")[2])
        for child in reversed([*ast.iter_child_nodes(node)]):
            if isinstance(child, ast.expr | ast.keyword | ast.Slice):
                to = self._expressions(child, to, around)
        return to

    def _one_after_other(self, node: ast.BoolOp, to: int, around: _Around) -> int:
        """`a and b`: the second one is asked only where the first does not decide."""
        goes_on, decides = ("yes", "no") if isinstance(node.op, ast.And) else ("no", "yes")
        after = self._expressions(node.values[-1], to, around)
        for value in reversed(node.values[:-1]):
            ways = {goes_on: "in what follows it", decides: AFTER}
            head = self._choose(
                Choice("ifexp", node, value, ways), value, (goes_on, after), (decides, to)
            )
            after = self._expressions(value, head, around)
        return after

    def _comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        to: int,
        around: _Around,
    ) -> int:
        ways = {"yes": "in its body", "no": AFTER}
        through = node.generators[0].iter
        head = self._choose(Choice("for", node, None, ways), through)
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        inside = head
        for element in reversed(elements):
            inside = self._expressions(element, inside, around)
        for test in reversed([test for part in node.generators for test in part.ifs]):
            choice = Choice("ifexp", node, test, {"yes": "in its first part", "no": AFTER})
            inside = self._choose(choice, test, ("yes", inside), ("no", head))
            inside = self._expressions(test, inside, around)
        self.steps[head].edges.extend((("yes", inside), ("no", to)))
        return self._expressions(through, head, around)


def _has_else(node: ast.If) -> bool:
    return any(part == "else" and block for part, block, _ in parts(node))


def _takes_all(handler: ast.ExceptHandler) -> bool:
    name = dotted(handler.type) if handler.type is not None else "BaseException"
    return name in ("BaseException", "Exception")


def _calls(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Call | ast.Await) for inner in ast.walk(node))


@functools.lru_cache(maxsize=512)
def flow_of(function: Function) -> Flow:
    """The steps of a function, made once."""
    return Flow(function)


@functools.lru_cache(maxsize=65536)
def binds(step: Step) -> frozenset[str]:
    """The names that a step binds."""
    node = step.node
    if step.choice is not None:
        owner = step.choice.statement
        targets: list[ast.AST] = [owner.target] if isinstance(owner, ast.For | ast.AsyncFor) else []
        targets += [case.pattern for case in owner.cases] if isinstance(owner, ast.Match) else []
        return frozenset(_stored([*targets, *([node] if node is not None else [])]))
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return frozenset({node.name})
        case ast.With() | ast.AsyncWith():
            return frozenset(_stored(item.optional_vars for item in node.items if item.optional_vars))
        case ast.For() | ast.AsyncFor() | None:
            return frozenset()
    return frozenset(_stored([node]))


def _stored(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in (inner for root in nodes for inner in ast.walk(root)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.id
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]


def _postdominators(leads: Sequence[Sequence[int]]) -> list[int]:
    """The immediate postdominator of each step, EXIT where there is none.

    By sets, which is enough for functions of some hundred steps: those behind which all ways go.
    """
    every = frozenset(range(len(leads)))
    behind = [frozenset({n}) if n == EXIT else every for n in range(len(leads))]
    changed = True
    while changed:
        changed = False
        for n in reversed(range(len(leads))):
            if not leads[n]:
                continue
            now = frozenset({n}) | frozenset.intersection(*(behind[to] for to in leads[n]))
            if now != behind[n]:
                behind[n], changed = now, True
    return [
        max(behind[n] - {n}, key=lambda step: len(behind[step]), default=EXIT) for n in range(len(leads))
    ]
