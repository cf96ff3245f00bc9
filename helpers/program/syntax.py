"""Trees of sources, and what of them is around a line. No I/O."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import Protocol, TypeVar

NamedFunction = ast.FunctionDef | ast.AsyncFunctionDef
Function = NamedFunction | ast.Module
Loop = ast.For | ast.AsyncFor | ast.While
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

Plain = int | float | bool | str | None

_Node = TypeVar("_Node", bound=ast.stmt | ast.expr)


class Place(Protocol):
    """A line of a function in a source, as a frame has it."""

    @property
    def text(self) -> str:
        """The source; empty where it is not known."""

    @property
    def function(self) -> str:
        """Name of the function."""

    @property
    def line(self) -> int:
        """Number of the line, from 1."""


@functools.lru_cache(maxsize=256)
def parsed(text: str) -> ast.Module | None:
    """The tree of a source; None for what is no Python."""
    try:
        return ast.parse(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


@functools.lru_cache(maxsize=256)
def functions_of(text: str) -> tuple[NamedFunction, ...]:
    """The functions of a source, those in classes and in other functions among them."""
    tree = parsed(text) or ast.Module(body=[], type_ignores=[])
    return tuple(node for node in ast.walk(tree) if isinstance(node, NamedFunction))


def holds(node: ast.stmt | ast.expr, line: int) -> bool:
    """True for a node that a line is part of."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def innermost(tree: ast.AST, line: int, *kinds: type[_Node]) -> _Node | None:
    """The innermost node of some kinds around a line."""
    around = (node for node in ast.walk(tree) if isinstance(node, kinds) and holds(node, line))
    return max(around, key=lambda node: (node.lineno, node.col_offset), default=None)


def scope_at(module: ast.AST, line: int) -> ast.AST:
    """The innermost function around a line, else the module."""
    return innermost(module, line, *_FUNCTIONS) or module


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions and classes in it."""
    inner = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, inner):
            yield from own_nodes(child)


def called_name(call: ast.Call) -> str:
    """The name of what is called, that of a method without its object."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def arguments_of(function: NamedFunction) -> frozenset[str]:
    """The names of a function's arguments, without those of `*args` and `**kwargs`."""
    arguments = function.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return frozenset(argument.arg for argument in every)


def positional_of(function: NamedFunction) -> list[str]:
    """The names of the arguments that a call gives by their place, in order, without `self`."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] == ["self"] else names


def method_of(call: ast.Call) -> tuple[str, str]:
    """`self.jobs` and `get` of `self.jobs.get()`; the first is empty for what is no method."""
    holder, _, method = (dotted(call.func) or "").rpartition(".")
    return holder, method


def dotted(node: ast.expr) -> str | None:
    """`self.resume` of a name or of an attribute of one."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None
