"""Which other threads of a process could end what one of its threads waits for. No I/O.

A thread that only beats (it sleeps, prints, measures) could not. Whether one could is told by what the
functions on its stack do: a queue is filled by `put`, a lock is given back by `release` or at the end of
a `with`, a condition changes with a name in it.
"""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..beacon.record import FrameEntry, Record, Thread
from ..model.waits import SIGNAL, OnCondition, OnIO, Wait
from ..program.syntax import called_name, holds
from .source import Sources

_NOTIFIES = frozenset(("set", "notify", "notify_all", "wait()", "abort"))
_RESOLVES = frozenset(("set_result", "set_exception", "cancel"))
_SENDS = frozenset(
    (
        *("write", "send", "sendall", "sendto", "send_bytes", "close", "shutdown", "connect"),
        *("create_connection", "call_soon_threadsafe", "run_coroutine_threadsafe"),
    )
)
_SIGNALS = frozenset(("kill", "pthread_kill", "raise_signal"))

ENDED_BY = {
    "get": frozenset(("put", "put_nowait")),
    "put": frozenset(("get", "get_nowait")),
    "join": frozenset(("task_done",)),
    "acquire": frozenset(("release", "__exit__")),
    "wait": _NOTIFIES,
    "wait_for": _NOTIFIES,
    "read": _SENDS,
    "result": _RESOLVES,
    "exception": _RESOLVES,
}
"""What a thread waits in -> the methods by which another one ends that: those of `queue`, `threading`,
`concurrent.futures`, and of the two ends of a pipe or a socket."""

_ANY = frozenset[str]().union(*ENDED_BY.values())

_EXECUTOR = os.path.join("concurrent", "futures", "thread.py")
_THREADING = os.sep + "threading.py"
_EVENT_LOOP = os.path.join("asyncio", "base_events.py")
_NAME = re.compile(r"[A-Za-z_]\w*")

DEEPEST = 4
"""Calls within the user's own module that are followed."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Effects(NamedTuple):
    """What a function does, with those of its module that it calls.

    Attributes:
        methods: the names of what it calls, `__exit__` for a `with` that may be for a lock; `wait()` for
            a `wait` without a time limit, by which a barrier opens.
        mutations: the names that it binds, and those of which it calls a method, but for modules.
        names: all names in it, but for modules.
    """

    methods: frozenset[str]
    mutations: frozenset[str]
    names: frozenset[str]


def freeing(wait: Wait, waiter: Thread, record: Record, sources: Sources) -> list[Thread]:
    """The threads beside `waiter` that could end a wait of its for something inside the process."""
    threads = (thread for thread in record["threads"] if thread is not waiter)
    return [thread for thread in threads if _could_end(wait, thread, sources)]


def sharing(waiter: Thread, record: Record, sources: Sources) -> list[Thread]:
    """The threads beside `waiter` that share a name with the line that it waits in.

    Where nothing tells for what it waits, they could end that.
    """
    file, line, _, _ = next((frame for frame in waiter["frames"] if frame[3]), ("", 0, "", False))
    tree = sources.tree(file)
    at_line = [node for node in ast.walk(tree) if getattr(node, "lineno", None) == line]
    names = _union(map(_names, at_line)) - _imported(tree)
    threads = (thread for thread in record["threads"] if thread is not waiter)
    return [
        thread
        for thread in threads
        if _is_given_work(thread["frames"])
        or any(names & effects.names for effects in _effects_of(thread, sources))
    ]


def given_task(frames: Sequence[FrameEntry]) -> bool:
    """True for a thread of an executor that is at a task, and for that of a timer before its time."""
    if any(name == "run" and file.endswith(_EXECUTOR) for file, _, name, _ in frames):
        return True
    return any(  # `Timer.run` itself calls `Event.wait`
        (inner[2], outer[2]) == ("wait", "run")
        and inner[0].endswith(_THREADING)
        and outer[0].endswith(_THREADING)
        for inner, outer in itertools.pairwise(frames)
    )


def _is_given_work(frames: Sequence[FrameEntry]) -> bool:
    """True for a thread that does what others have given it, be it the tasks of an event loop.

    Nothing tells what that is.
    """
    loops = (name == "run_forever" and file.endswith(_EVENT_LOOP) for file, _, name, _ in frames)
    return given_task(frames) or any(loops)


def _could_end(wait: Wait, thread: Thread, sources: Sources) -> bool:
    if _is_given_work(thread["frames"]):
        return True
    if isinstance(wait, OnCondition):
        names = frozenset(_NAME.findall(wait.op))
        return any(names & effects.mutations for effects in _effects_of(thread, sources))
    return any(_ending(wait) & effects.methods for effects in _effects_of(thread, sources))


def _ending(wait: Wait) -> frozenset[str]:
    """The methods by which another thread ends a wait: any, for one in a function that is not known."""
    if isinstance(wait, OnIO):
        return _SIGNALS if wait.target == SIGNAL else _SENDS
    return ENDED_BY.get(wait.op, _ANY)


def _effects_of(thread: Thread, sources: Sources) -> Iterator[Effects]:
    """What each of the user's functions on the stack of a thread does."""
    for file, line, name, user in thread["frames"]:
        if user:
            yield _effects(sources.tree(file), name, line)


@functools.lru_cache(maxsize=512)
def _effects(tree: ast.AST, name: str, line: int) -> Effects:
    """What the innermost function of that name around a line does."""
    functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
    candidates = [f for f in functions if f.name == name and holds(f, line)]
    if not candidates:
        return Effects(frozenset(), frozenset(), frozenset())
    by_name = {function.name: function for function in functions}
    reachable = [max(candidates, key=lambda function: function.lineno)]
    for _ in range(DEEPEST):
        callees = by_name.keys() & _union(map(_methods, reachable))
        reachable += [by_name[name] for name in callees if by_name[name] not in reachable]
    modules = _imported(tree)
    return Effects(
        _union(map(_methods, reachable)),
        _union(map(_mutations, reachable)) - modules,
        _union(map(_names, reachable)) - modules,
    )


def _union(names: Iterable[Iterable[str]]) -> frozenset[str]:
    return frozenset(itertools.chain.from_iterable(names))


def _methods(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = called_name(node)
            yield name if node.args or node.keywords or name != "wait" else "wait()"
        elif isinstance(node, ast.With) and not all(
            isinstance(item.context_expr, ast.Call) for item in node.items
        ):
            yield "__exit__"


def _mutations(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and not isinstance(
            node.ctx, ast.Load
        ):
            yield from _NAME.findall(ast.unparse(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from _NAME.findall(ast.unparse(node.func.value))


def _names(node: ast.AST) -> Iterator[str]:
    """The names and attributes in a part of a program, but for what every program has."""
    for part in ast.walk(node):
        name = part.id if isinstance(part, ast.Name) else getattr(part, "attr", None)
        if isinstance(name, str) and not hasattr(builtins, name):
            yield name


def _imported(tree: ast.AST) -> frozenset[str]:
    """The names of modules and of what is taken from them, and `self`, which tells nothing."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    names = (alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names)
    return frozenset((*names, "self"))
