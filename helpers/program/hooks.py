"""What a program tells those that call it back: a library, or a loop over its generators. No I/O."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

import msgspec

from .syntax import arguments_of, called_name, dotted, own_nodes, parsed

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Telling(msgspec.Struct, frozen=True, eq=False):
    """A condition under which a function tells its caller something that decides what comes next."""

    function: _Function
    statement: ast.If


@functools.lru_cache(maxsize=256)
def hooks(text: str, calls: frozenset[str]) -> tuple[Telling, ...]:
    """What a source tells the libraries that call its functions, in the order of its lines.

    A function that the program does not call is called by a library. It tells the library something
    where it stores an attribute of what it was given, as `control.should_training_stop`, or of the
    trainer that its object belongs to, or where it returns something under a condition.

    Args:
        calls: the names of the functions that any file of the program calls (`called`).
    """
    found = [
        Telling(function, node)
        for function in _functions(text)
        if function.name not in calls and not function.name.startswith("__")
        for node in _ifs(function)
        if any(_tells(inner, arguments_of(function)) for inner in own_nodes(node))
    ]
    return tuple(sorted(found, key=lambda one: one.statement.lineno))


@functools.lru_cache(maxsize=1024)
def exits(text: str, through: ast.expr) -> tuple[Telling, ...]:
    """What may end the generators of a source that a loop goes through, before they are through."""
    names = {
        called_name(one).rpartition(".")[2] for one in ast.walk(through) if isinstance(one, ast.Call)
    }
    return tuple(
        Telling(function, node)
        for function in _functions(text)
        if function.name in names
        and any(isinstance(one, ast.Yield | ast.YieldFrom) for one in own_nodes(function))
        for node in _ifs(function)
        if any(isinstance(one, ast.Return | ast.Break) for one in own_nodes(node))
    )


@functools.lru_cache(maxsize=256)
def _functions(text: str) -> tuple[_Function, ...]:
    """The functions of a source."""
    return tuple(node for node in _nodes(text) if isinstance(node, _Function))


@functools.lru_cache(maxsize=256)
def called(text: str) -> frozenset[str]:
    """The names of the functions that a source calls."""
    calls = (node for node in _nodes(text) if isinstance(node, ast.Call))
    return frozenset(called_name(call).rpartition(".")[2] for call in calls)


def _nodes(text: str) -> Iterator[ast.AST]:
    return ast.walk(parsed(text) or ast.Module(body=[], type_ignores=[]))


def _ifs(function: _Function) -> Iterator[ast.If]:
    yield from (node for node in own_nodes(function) if isinstance(node, ast.If))


def _tells(node: ast.AST, given: frozenset[str]) -> bool:
    match node:
        case ast.Return(value=ast.expr() as value):
            return not (isinstance(value, ast.Constant) and value.value is None)
        case ast.Attribute(ctx=ast.Store()):
            base, *attributes = (dotted(node) or "").split(".")
            return (base in given and base != "self") or (
                base == "self" and attributes[:1] == ["trainer"]
            )
    return False
