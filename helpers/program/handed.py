"""What a program hands to a library, and the conditions that decide what that is. No I/O."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from .blocks import path
from .syntax import Function, called_name, dotted, functions_of, holds, innermost, own_nodes

DEPTH = 6
"""Names and functions that are followed from one to the next."""

CHANGES = ("update", "setdefault", "append", "extend", "add")
"""Methods that change what an object holds."""

_OUTPUT = re.compile(r"tqdm|progress|verbos|quiet|log_level|level$|^disable$|print")
"""Names of arguments that decide what is printed, and no more."""


class Handed(NamedTuple):
    """A condition that decides what an argument is, or what an object holds.

    Attributes:
        function: the name of the function around it.
        statement: that holds the condition; test: the condition.
    """

    function: str
    statement: ast.stmt
    test: ast.expr


def handed(function: Function, line: int, text: str) -> Iterator[Handed]:
    """The conditions that decide what the calls of a line are given, and what they are called on.

    Args:
        function: that holds the line, or the module; text: the source of both.
    """
    follow = _Follow(text)
    statement = innermost(function, line, ast.stmt)
    for call in own_nodes(statement) if statement is not None else ():
        if statement is not None and isinstance(call, ast.Call) and holds(call, line):
            yield from follow.value(call, statement, function, DEPTH)


class _Follow:
    """Follows values through the names of a source, each name once."""

    def __init__(self, text: str) -> None:
        self._functions = functions_of(text)
        self._names: set[tuple[Function, str]] = set()

    def value(
        self, value: ast.expr, statement: ast.stmt, scope: Function, depth: int
    ) -> Iterator[Handed]:
        """The conditions in a value, in what its names are bound to, and in what it calls."""
        nodes = [*_without_output(value)]
        for node in nodes:
            if isinstance(node, ast.Compare | ast.IfExp):
                test = node.test if isinstance(node, ast.IfExp) else node
                yield Handed(getattr(scope, "name", "<module>"), statement, test)
        for node in nodes if depth else ():
            if isinstance(node, ast.Name):
                yield from self._name(node.id, scope, depth - 1)
            elif isinstance(node, ast.Call):
                yield from self._results(called_name(node), depth - 1)

    def _name(self, name: str, scope: Function, depth: int) -> Iterator[Handed]:
        if (scope, name) in self._names:
            return
        self._names.add((scope, name))
        for statement, value in _stores(scope, name):
            for step in path(scope, statement.lineno):
                if step.part and isinstance(step.node, ast.If):
                    yield Handed(getattr(scope, "name", "<module>"), step.node, step.node.test)
            yield from self.value(value, statement, scope, depth)

    def _results(self, name: str, depth: int) -> Iterator[Handed]:
        for function in self._functions:
            for node in own_nodes(function) if function.name == name else ():
                if isinstance(node, ast.Return) and node.value is not None:
                    yield from self.value(node.value, node, function, depth)


def _without_output(value: ast.expr) -> Iterator[ast.AST]:
    """All parts of a value but arguments that decide what is printed."""
    yield value
    for child in ast.iter_child_nodes(value):
        printed = isinstance(child, ast.keyword) and _OUTPUT.search(child.arg or "")
        if not printed and isinstance(child, ast.expr | ast.keyword):
            yield from _without_output(child.value if isinstance(child, ast.keyword) else child)


def _stores(scope: Function, name: str) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """The statements that bind a name, or change what its object holds, each with the new value."""
    for node in own_nodes(scope):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(_base(target) == name for target in targets):
                yield node, node.value
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            changed, _, method = (dotted(node.value.func) or "").rpartition(".")
            if method in CHANGES and changed == name:
                yield node, node.value


def _base(target: ast.expr) -> str:
    """`opts` of `opts`, `opts["steps"]` and `opts.steps`."""
    while isinstance(target, ast.Subscript | ast.Attribute):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""
