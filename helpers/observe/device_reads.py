"""Which lines ask for a value that a device has yet to compute. No I/O."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Sequence

from ..beacon.record import Record, Thread
from ..model.frames import Frame
from ..program.syntax import called_name, holds
from .groups import on_device
from .look import NativeStack
from .source import Sources, frame_of

METHODS = frozenset(
    (
        *("item", "cpu", "tolist", "numpy", "copy_", "synchronize", "elapsed_time"),
        *("nonzero", "is_nonzero", "masked_select", "unique", "equal", "allclose"),
    )
)
"""Methods and functions of torch that return once the device has computed what they ask for."""

BUILTINS = frozenset(("float", "int", "bool", "print", "str", "repr", "format"))
"""Functions of Python's that do so when they are given a tensor."""

TESTED = "if"
"""A tensor in a condition: its truth is a value of the device."""

_Headed = ast.If | ast.While | ast.IfExp | ast.Assert
_Block = ast.If | ast.While | ast.For | ast.With | ast.Try | ast.FunctionDef | ast.ClassDef | ast.Match

STOOD = 10.0
"""Seconds for which a thread must have spun at a line before the functions are read in which it is."""

WAITS = re.compile(r"synchronize|memcpy_and_sync|^(cu|cuda|hip)memcpy", re.IGNORECASE)
"""C functions that return once a device is done, as those of CUDA and HIP: copies, too, to memory
of the host (https://github.com/pytorch/pytorch/issues/22834 has such a stack)."""


def question(record: Record, now: float, sources: Sources) -> NativeStack | None:
    """What is to be read of a process that keeps a processor busy at a line that does not tell why."""
    main = next((thread for thread in record["threads"] if thread["main"]), None)
    if main is None or main["call"] is not None or not main.get("spins") or not on_device(record):
        return None
    pid, since = main.get("native_id"), main["since"]
    explained = read_at([frame_of(entry, sources.cwd) for entry in main["frames"]], sources) is not None
    return None if pid is None or explained or now - since < STOOD else NativeStack(pid, since)


def with_native_stack(record: Record, functions: Sequence[str] | None) -> Record:
    """The record with the C functions in which its main thread is, as an answer to `question`."""
    if not functions:
        return record
    added: Thread
    threads: list[Thread] = []
    for thread in record["threads"]:
        added = {**thread, "native_stack": [*functions]}
        threads.append(added if thread["main"] else thread)
    return {**record, "threads": threads}


def waits_in(thread: Thread) -> str | None:
    """The C function in which a thread waits for its device, where it is known to be in one."""
    return next((name for name in thread.get("native_stack", ()) if WAITS.search(name)), None)


def read_at(frames: Sequence[Frame], sources: Sources) -> str | None:
    """What the innermost line that can do so asks of a device, out to the user's own; None for nothing.

    Args:
        frames: of a thread, innermost first.
    """
    for frame in frames:
        read = _read_in(sources.tree(frame.file), frame.line)
        if read is not None or frame.user:
            return read
    return None


@functools.lru_cache(maxsize=512)
def _read_in(tree: ast.AST, line: int) -> str | None:
    """What a line asks of a device, the likeliest first: a value by its name, then a condition."""
    at_line = [node for node in ast.walk(tree) if _is_at(node, line)]
    parts = (part for node in at_line for part in _own_parts(node))
    names = [called_name(c) for part in parts for c in ast.walk(part) if isinstance(c, ast.Call)]
    if (method := next((name for name in names if name in METHODS or name == "to"), None)) is not None:
        return method
    if any(isinstance(node, _Headed) for node in at_line):
        return TESTED
    return next((name for name in names if name in BUILTINS), None)


def _is_at(node: ast.AST, line: int) -> bool:
    """True for a statement or a condition that a line is part of, of one with a body its head."""
    if not isinstance(node, ast.stmt | ast.IfExp):
        return False
    return any(isinstance(part, ast.expr | ast.stmt) and holds(part, line) for part in _own_parts(node))


def _own_parts(node: ast.AST) -> Iterator[ast.AST]:
    """What runs in the line of a statement itself: of one with a body, its head."""
    if not isinstance(node, _Block):
        yield node
        return
    for field, value in ast.iter_fields(node):
        if field in ("test", "iter", "subject"):
            yield value
        elif field == "items":
            yield from (item.context_expr for item in value)
