"""The statements that decide which value an expression has. No I/O."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from .blocks import path
from .syntax import Function, called_name, dotted, functions_of, own_nodes

DEPTH = 4
"""Names and functions that are followed from one to the next."""


class Chosen(NamedTuple):
    """A statement under which a name is bound, or a function returns.

    Attributes:
        function: the name of the function around it.
    """

    function: str
    statement: ast.If | ast.Match | ast.IfExp


def chosen_by(value: ast.expr, function: Function, text: str, depth: int = DEPTH) -> Iterator[Chosen]:
    """The conditions that decide what an expression is: of its names, and of what it calls.

    Args:
        value: the expression; function: around it, or the module.
        text: the source of both.
        depth: how many names and functions are followed.
    """
    name = getattr(function, "name", "<module>")
    if isinstance(value, ast.IfExp):
        yield Chosen(name, value)
    if not depth:
        return
    for scope, node in _sources_of(value, function, text):
        for step in path(scope, node.lineno):
            if step.part and isinstance(step.node, ast.If | ast.Match):
                yield Chosen(getattr(scope, "name", name), step.node)
        if node.value is not None:
            yield from chosen_by(node.value, scope, text, depth - 1)


def _sources_of(
    value: ast.expr, function: Function, text: str
) -> Iterator[tuple[Function, ast.Return | ast.Assign | ast.AnnAssign]]:
    """The statements that give an expression its value, each with the function around it."""
    functions = functions_of(text)
    match value:
        case ast.Name():
            yield from ((function, binding) for binding in bindings(function, value.id))
        case ast.Attribute():
            wanted = dotted(value) or ""
            yield from ((scope, node) for scope in functions for node in bindings(scope, wanted))
        case ast.Call():
            for scope in functions:
                if scope.name == called_name(value):
                    returns = (node for node in own_nodes(scope) if isinstance(node, ast.Return))
                    yield from ((scope, node) for node in returns)


def bindings(function: Function, name: str) -> Iterator[ast.Assign | ast.AnnAssign]:
    """The statements of a function that bind a name, or store in an attribute."""
    for node in own_nodes(function):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if isinstance(node, ast.Assign | ast.AnnAssign) and name in map(dotted, targets):
            yield node
