"""What is repeated around a line, and what tells one turn from the next. No I/O."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from typing import Protocol

import msgspec

from .syntax import Function, Place, Plain, dotted, own_nodes

OF_CALLS = ("idx", "index", "step", "epoch", "iteration")
"""How the arguments end by which libraries number their calls, `batch_idx` for example."""


class ValuedPlace(Place, Protocol):
    """A line with the values that are known there."""

    @property
    def values(self) -> Mapping[str, Plain]:
        """Name -> value."""


class Counter(msgspec.Struct, frozen=True):
    """A variable that is one more in each turn.

    Attributes:
        raised: line of the statement in the loop that raises it; None for what the loop itself counts.
    """

    name: str
    raised: int | None = None

    def at_start(self, frame: ValuedPlace) -> int | None:
        """What it was at the start of the turn in which a frame is; None where it is not known."""
        value = frame.values.get(self.name)
        if type(value) is not int:
            return None
        return value - (self.raised is not None and self.raised < frame.line)


class Turns(msgspec.Struct, frozen=True):
    """A loop around a line, or a library that may call a function again and again.

    Attributes:
        frame: the frame, from 0 for the outermost, that can name what tells the turns apart.
        loop: None for the calls of a function by a library.
        counters: what tells its turns apart.
    """

    frame: int
    loop: ast.stmt | None
    counters: tuple[Counter, ...]

    @classmethod
    def of_loop(cls, frame: int, loop: ast.stmt) -> Turns:
        """The turns of a loop."""
        return cls(frame, loop, counters(loop))

    @classmethod
    def of_calls(cls, frame: int, function: Function) -> Turns:
        """The calls of a function by a library: an argument that numbers them tells them apart."""
        arguments = getattr(function, "args", None)
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs] if arguments else []
        names = (argument.arg for argument in every)
        return cls(frame, None, tuple(Counter(name) for name in names if name.endswith(OF_CALLS)))

    def counts(self, frame: ValuedPlace, peer: ValuedPlace) -> list[tuple[int, int]]:
        """What counts the turns, where it is known in two frames."""
        pairs = [(counter.at_start(frame), counter.at_start(peer)) for counter in self.counters]
        return [(n, m) for n, m in pairs if n is not None and m is not None]


@functools.lru_cache(maxsize=8192)
def counters(loop: ast.stmt) -> tuple[Counter, ...]:
    """What counts the turns of a loop: the target of `range` or `enumerate`, and what it raises by 1."""
    return tuple(dict.fromkeys(_counters(loop)))


@functools.lru_cache(maxsize=8192)
def length_of(value: ast.expr) -> ast.expr | None:
    """`len(loader)`, for `loader` or `enumerate(loader)`; None for what has no name."""
    if isinstance(value, ast.Call) and dotted(value.func) == "enumerate" and value.args:
        value = value.args[0]
    if dotted(value) is None:
        return None
    return ast.Call(ast.Name("len", ast.Load()), [value], [])


def _counters(loop: ast.stmt) -> Iterator[Counter]:
    if isinstance(loop, ast.For):
        function = loop.iter.func if isinstance(loop.iter, ast.Call) else None
        by = function.id if isinstance(function, ast.Name) else ""
        first = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
        arguments = loop.iter.args if isinstance(loop.iter, ast.Call) else []
        upwards = len(arguments) < 3
        numbered = by == "range" if first is loop.target else by == "enumerate"
        if numbered and upwards and isinstance(first, ast.Name) and _is_bound(first.id, loop) == 1:
            yield Counter(first.id)
    for node in getattr(loop, "body", ()):
        match node:
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.Constant(value=1)):
                if _is_bound(name, loop) == 1:
                    yield Counter(name, node.lineno)


def _is_bound(name: str, loop: ast.stmt) -> int:
    """How many lines of a loop bind a name."""
    stores = (node for node in own_nodes(loop) if isinstance(node, ast.Name))
    return sum(node.id == name and isinstance(node.ctx, ast.Store) for node in stores)
