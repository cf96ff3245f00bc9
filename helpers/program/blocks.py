"""The statements around a line of a source, down to the line itself. No I/O."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .syntax import Function, Place, holds, own_nodes, parsed


@dataclass(frozen=True)
class Step:
    """One statement of those around a line, and the part of it that holds the line.

    Attributes:
        node: the statement; block: the statements of which it is one, index: its place among them.
        part: what of it holds the line, as `body`, `else`, `elif 1`, `handler 0`, `finally` or `case 0`;
            empty for its head, and for a statement without parts.
        tests: the conditions that were asked on the way into the part, with what each must have been.
    """

    node: ast.stmt
    block: Sequence[ast.stmt] = field(repr=False)
    index: int
    part: str
    tests: tuple[tuple[ast.expr, bool], ...] = ()

    def within(self, step: Step) -> bool:
        """True when both are in the same part of the same statement."""
        return self.node is step.node and self.part == step.part


LONGEST_PIECE = 40
"""Characters of a condition that are quoted to name a part."""


def function_of(frame: Place) -> Function | None:
    """The function that a frame runs; None where the source does not show it.

    A name that differs means that the file has been edited; lambdas, comprehensions and bodies of
    classes hold no statements that part ranks. A generator or coroutine is resumed from elsewhere.
    """
    return _function_at(frame.text, frame.function, frame.line) if frame.text else None


@functools.lru_cache(maxsize=4096)
def _function_at(text: str, name: str, line: int) -> Function | None:
    tree = parsed(text)
    if tree is None:
        return None
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef)
        and holds(node, line)
    ]
    node = max(around, key=lambda scope: (scope.lineno, scope.col_offset), default=tree)
    if isinstance(node, ast.Module):
        at_end = after_all(text)
        return node if name == "<module>" and line <= at_end else None
    if not isinstance(node, ast.FunctionDef) or node.name != name or _resumed(node):
        return None
    return node if line >= node.body[0].lineno else None


def after_all(text: str) -> int:
    """The line of one that has come to the end of a source."""
    return text.count("\n") + 2


def path(function: Function, line: int) -> tuple[Step, ...]:
    """The statements around a line of a function, outermost first; the last one holds it."""
    return tuple(_steps(function.body, line))


def statements_around(frame: Place) -> tuple[Step, ...]:
    """The statements around the line of a frame, outermost first; none where no source shows them."""
    function = function_of(frame)
    return path(function, frame.line) if function is not None else ()


def _steps(block: Sequence[ast.stmt], line: int) -> Iterator[Step]:
    for index, node in enumerate(block):
        if not holds(node, line):
            continue
        for part, inner, tests in parts(node):
            if inner and inner[0].lineno <= line <= (inner[-1].end_lineno or inner[-1].lineno):
                yield Step(node, block, index, part, tests)
                yield from _steps(inner, line)
                return
        yield Step(node, block, index, "")
        return


Part = tuple[str, Sequence[ast.stmt], tuple[tuple[ast.expr, bool], ...]]


def parts(node: ast.stmt) -> Iterator[Part]:
    """The parts of a compound statement: name, statements, and the conditions on the way into it."""
    match node:
        case ast.If():
            yield from _branches(node)
        case ast.For() | ast.AsyncFor():
            yield from (("body", node.body, ()), ("else", node.orelse, ()))
        case ast.While():
            yield from (("body", node.body, ((node.test, True),)), ("else", node.orelse, ()))
        case ast.With() | ast.AsyncWith():
            yield "body", node.body, ()
        case ast.Try() | ast.TryStar():
            yield from (("body", node.body, ()), ("else", node.orelse, ()))
            yield from ((f"handler {i}", handler.body, ()) for i, handler in enumerate(node.handlers))
            yield "finally", node.finalbody, ()
        case ast.Match():
            yield from ((f"case {i}", case.body, ()) for i, case in enumerate(node.cases))


def _branches(node: ast.If) -> Iterator[Part]:
    """The parts of an `if` with all its `elif`, which are one statement for a reader."""
    conditions: tuple[tuple[ast.expr, bool], ...] = ()
    number, now = 0, node
    while True:
        yield f"elif {number}" if number else "body", now.body, (*conditions, (now.test, True))
        conditions = (*conditions, (now.test, False))
        follows = now.orelse
        nested = follows[0] if len(follows) == 1 else None
        if not (isinstance(nested, ast.If) and nested.col_offset == now.col_offset):
            break
        number, now = number + 1, nested
    yield "else", now.orelse, conditions


def _resumed(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(function))


def label_of_part(node: ast.AST, part: str) -> str:
    """A part of a statement in words: `in its body`, `in its except ValueError`."""
    name, _, number = part.partition(" ")
    if name == "handler" and isinstance(node, ast.Try | ast.TryStar):
        kind = node.handlers[int(number)].type
        return _with_piece("in its except", kind)
    if name == "case" and isinstance(node, ast.Match):
        return _with_piece("in its case", node.cases[int(number)].pattern)
    if name == "elif":
        for _ in range(int(number)):
            node = node.orelse[0] if isinstance(node, ast.If) else node
        return _with_piece("in its elif", getattr(node, "test", None))
    return f"in its {name}"


def _with_piece(words: str, node: ast.AST | None) -> str:
    """The words, and a piece of the source if it is short."""
    piece = "" if node is None else ast.unparse(node)
    return f"{words} {piece}" if 0 < len(piece) <= LONGEST_PIECE else words
