"""Context managers in which a library does not communicate, and what decides who enters them. No I/O."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from .chosen import DEPTH, Chosen, bindings
from .stored import Stored
from .syntax import Function, arguments_of, called_name, dotted, functions_of, own_nodes
from .turns import counters

SWITCHES = frozenset(("no_sync", "no_backward_sync"))
"""Methods of DDP and FSDP (torch 1.0 to 2.15) and of accelerate, and Fabric's: in their block a backward
pass exchanges no gradients."""


def switches(function: Function, line: int, text: str) -> Iterator[Chosen]:
    """What decides whether a line runs in such a block, but for what all ranks answer alike.

    Args:
        function: that holds the line, or the module; text: the source of both.
    """
    for node in own_nodes(function):
        if isinstance(node, ast.With) and node.body[0].lineno <= line <= (node.end_lineno or line):
            for item in node.items:
                for scope, nodes in _managers(item.context_expr, function, text):
                    name = getattr(scope, "name", "<module>")
                    for choice in nodes:
                        if _decides(choice) and not _is_alike(choice.test, scope, text, DEPTH):
                            yield Chosen(name, choice)


def _managers(
    value: ast.expr, function: Function, text: str
) -> Iterator[tuple[Function, list[ast.If | ast.IfExp]]]:
    """The conditions in an expression, in what its name is bound to, and in a function that it calls."""
    values = [value]
    if isinstance(value, ast.Name):
        values = [bound.value for bound in bindings(function, value.id) if bound.value is not None]
    for expression in values:
        yield function, _conditions(ast.walk(expression))
        callee = called_name(expression) if isinstance(expression, ast.Call) else ""
        for scope in functions_of(text):
            if scope.name == callee:
                yield scope, _conditions(own_nodes(scope))


def _conditions(nodes: Iterable[ast.AST]) -> list[ast.If | ast.IfExp]:
    return [node for node in nodes if isinstance(node, ast.If | ast.IfExp)]


def _decides(choice: ast.If | ast.IfExp) -> bool:
    """True where one way of a condition leads into such a block, and the other does not."""
    ways = (choice.body, choice.orelse)
    return len({any(map(_is_switch, _walk(way))) for way in ways}) > 1


def _walk(way: ast.expr | list[ast.stmt]) -> Iterator[ast.AST]:
    for node in way if isinstance(way, list) else [way]:
        yield from ast.walk(node)


def _is_switch(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called_name(node) in SWITCHES


def _is_alike(value: ast.expr, scope: Function, text: str, depth: int) -> bool:
    """True for what all ranks answer alike: by constants, settings, and what counts iterations."""
    if isinstance(value, ast.Name):
        return _is_name_alike(value.id, scope, text, depth)
    if isinstance(value, ast.Attribute):
        name = dotted(value)
        if name is None or Stored.of(text).may_change(name):
            return False
        return not _is_handed_on(name.partition(".")[0], scope)
    if isinstance(value, ast.Call | ast.Subscript | ast.Await):
        return False
    parts = (node for node in ast.iter_child_nodes(value) if isinstance(node, ast.expr))
    return all(_is_alike(part, scope, text, depth) for part in parts)


def _is_name_alike(name: str, scope: Function, text: str, depth: int) -> bool:
    """True for a name that counts iterations, or that is bound to nothing but what is alike."""
    loops = (node for node in own_nodes(scope) if isinstance(node, ast.For | ast.While))
    if name in {counter.name for loop in loops for counter in counters(loop)}:
        return True
    values = [binding.value for binding in bindings(scope, name)]
    uses = (node for node in own_nodes(scope) if isinstance(node, ast.Name) and node.id == name)
    if sum(isinstance(use.ctx, ast.Store) for use in uses) > len(values):
        return False
    if values:
        return depth > 0 and all(value and _is_alike(value, scope, text, depth - 1) for value in values)
    return not isinstance(scope, ast.FunctionDef) or name not in arguments_of(scope)


def _is_handed_on(name: str, scope: Function) -> bool:
    """True for a name that a function uses as a whole, too, as it does data, and no settings."""
    nodes = [*own_nodes(scope)]
    uses = sum(isinstance(node, ast.Name) and node.id == name for node in nodes)
    parts = (node.value for node in nodes if isinstance(node, ast.Attribute))
    return name != "self" and uses > sum(
        isinstance(part, ast.Name) and part.id == name for part in parts
    )
