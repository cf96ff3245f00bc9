"""What a program tells those that call it back: a library, or a loop over its generators. No I/O."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

import msgspec

from .syntax import (
    NamedFunction,
    arguments_of,
    called_name,
    dotted,
    functions_of,
    own_nodes,
    parsed,
    positional_of,
)

_Handed = list[tuple[NamedFunction, frozenset[str]]]


class Telling(msgspec.Struct, frozen=True, eq=False):
    """A condition under which a function tells its caller something that decides what comes next."""

    function: NamedFunction
    statement: ast.If


@functools.lru_cache(maxsize=256)
def hooks(text: str, calls: frozenset[str]) -> tuple[Telling, ...]:
    """What a source tells the libraries that call its functions, in the order of its lines.

    A function that the program does not call is called by a library. It tells the library something
    where it stores an attribute of what it was given, as `control.should_training_stop`, or of the
    trainer that its object belongs to, or hands that on to a function that does, or where it returns
    something under a condition.

    Args:
        calls: the names of the functions that any file of the program calls (`callees`).
    """
    functions = functions_of(text)
    tellings = (
        telling
        for function in functions
        if function.name not in calls and not function.name.startswith("__")
        for telling in _tellings(function, functions)
    )
    return tuple(sorted(tellings, key=lambda telling: telling.statement.lineno))


def _tellings(function: NamedFunction, functions: tuple[NamedFunction, ...]) -> Iterator[Telling]:
    """The conditions of a function, and of those to which it hands on what it was given."""
    arguments = arguments_of(function)
    handed: dict[ast.AST, _Handed] = {
        node: _handed_to(node, arguments, functions)
        for node in own_nodes(function)
        if isinstance(node, ast.Call)
    }
    for node in _ifs(function):
        if any(_tells(inner, arguments) or handed.get(inner) for inner in own_nodes(node)):
            yield Telling(function, node)
    for helper, names in (pair for pairs in handed.values() for pair in pairs):
        for node in _ifs(helper):
            if any(_stores(inner, names) for inner in own_nodes(node)):
                yield Telling(helper, node)


def _handed_to(
    call: ast.AST, arguments: frozenset[str], functions: tuple[NamedFunction, ...]
) -> _Handed:
    """The function that a call hands arguments to, and what it calls these, if it stores in them."""
    if not isinstance(call, ast.Call):
        return []
    helpers = []
    for function in functions:
        if function.name == called_name(call):
            pairs = [*zip(positional_of(function), call.args, strict=False)]
            pairs += [(word.arg, word.value) for word in call.keywords if word.arg is not None]
            handed = frozenset(name for name, value in pairs if dotted(value) in arguments - {"self"})
            if any(_stores(node, handed) for node in own_nodes(function)):
                helpers.append((function, handed))
    return helpers


@functools.lru_cache(maxsize=1024)
def exits(text: str, through: ast.expr, *, skips: bool = False) -> tuple[Telling, ...]:
    """What may end the generators of a source that a loop goes through, before they are through.

    Args:
        skips: whether what may leave out an item counts as well.
    """
    leaves = (ast.Return, ast.Break, ast.Continue) if skips else (ast.Return, ast.Break)
    names = {
        called_name(node).rpartition(".")[2] for node in ast.walk(through) if isinstance(node, ast.Call)
    }
    return tuple(
        Telling(function, node)
        for function in functions_of(text)
        if function.name in names
        and any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in own_nodes(function))
        for node in _ifs(function)
        if any(isinstance(inner, leaves) for inner in own_nodes(node))
    )


@functools.lru_cache(maxsize=256)
def callees(text: str) -> frozenset[str]:
    """The names of the functions that a source calls."""
    calls = (node for node in _nodes(text) if isinstance(node, ast.Call))
    return frozenset(called_name(call).rpartition(".")[2] for call in calls)


def _nodes(text: str) -> Iterator[ast.AST]:
    return ast.walk(parsed(text) or ast.Module(body=[], type_ignores=[]))


def _ifs(function: NamedFunction) -> Iterator[ast.If]:
    yield from (node for node in own_nodes(function) if isinstance(node, ast.If))


def _tells(node: ast.AST, arguments: frozenset[str]) -> bool:
    if isinstance(node, ast.Return) and node.value is not None:
        return not (isinstance(node.value, ast.Constant) and node.value.value is None)
    return _stores(node, arguments)


def _stores(node: ast.AST, arguments: frozenset[str]) -> bool:
    """True for what stores an attribute of an argument, or of the trainer of an object."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
        return False
    base, *attributes = (dotted(node) or "").split(".")
    return (base in arguments and base != "self") or (base == "self" and attributes[:1] == ["trainer"])
