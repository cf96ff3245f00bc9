"""What ends a wait for another thread, by the calls of a source. No I/O."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from typing import NamedTuple

from .syntax import dotted, own_nodes, parsed

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
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
    waits = [node for node in calls if node.lineno <= line <= (node.end_lineno or line) and _waits(node)]
    if tree is None or len(waits) != 1:
        return None
    holder, _, method = (dotted(waits[0].func) or "").rpartition(".")
    scopes = [tree, *(node for node in ast.walk(tree) if isinstance(node, _Function))]
    wakers = tuple(
        Waker(node.lineno, getattr(scope, "name", "<module>"))
        for scope in scopes
        for node in own_nodes(scope)
        if isinstance(node, ast.Call)
        for other, _, does in [(dotted(node.func) or "").rpartition(".")]
        if does in WAKERS[method] and other.rpartition(".")[2] == holder.rpartition(".")[2]
    )
    return Awaited(f"{holder}.{method}()", wakers) if 0 < len(wakers) <= MOST_WAKERS else None


def _waits(node: ast.Call) -> bool:
    holder, _, method = (dotted(node.func) or "").rpartition(".")
    return bool(holder) and method in WAKERS
