"""What ends a wait for another thread, by the calls of a source. No I/O."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from typing import NamedTuple

from .syntax import holds, method_of, own_nodes, parsed

WAKERS: Mapping[str, tuple[str, ...]] = {
    "get": ("put", "put_nowait"),
    "wait": ("set", "notify", "notify_all"),
    "wait_for": ("notify", "notify_all"),
    "acquire": ("release",),
    "result": ("set_result", "set_exception"),
}
"""A method that waits -> those of the same object that let it go on: `queue`, `threading`, and
`concurrent.futures` of Python 3.11."""

MOST_WAKERS = 3
"""Calls that are told; with more of them none says much."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Waker(NamedTuple):
    """A call that lets a thread go on.

    Attributes:
        function: around it, `<module>` at top level.
    """

    line: int
    function: str


class Awaited(NamedTuple):
    """A call that waits for another thread: `jobs.get()`, and what ends it."""

    call: str
    wakers: tuple[Waker, ...]


@functools.lru_cache(maxsize=256)
def awaited(text: str, line: int) -> Awaited | None:
    """The call at a line that waits for another thread; None where the source has nothing that ends it.

    An object is known by the last part of its name, since functions get it under names of their own.
    """
    tree = parsed(text)
    if tree is None:
        return None
    at_line = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and holds(node, line))
    waits = [
        (holder, method) for holder, method in map(method_of, at_line) if holder and method in WAKERS
    ]
    if len(waits) != 1:
        return None
    ((holder, method),) = waits
    scopes = [tree, *(node for node in ast.walk(tree) if isinstance(node, _Function))]
    wakers = tuple(
        Waker(node.lineno, getattr(scope, "name", "<module>"))
        for scope in scopes
        for node in own_nodes(scope)
        if isinstance(node, ast.Call)
        for owner, does in [method_of(node)]
        if does in WAKERS[method] and owner.rpartition(".")[2] == holder.rpartition(".")[2]
    )
    return Awaited(f"{holder}.{method}()", wakers) if 0 < len(wakers) <= MOST_WAKERS else None
