"""Which asynchronous collectives a rank has not waited for, by what its source says. No I/O.

A device carries out what was issued in order, across groups too: a group's stream waits for the current
one, which waits for a group's stream where the call is synchronous, or its handle is waited for
(ProcessGroupNCCL.cpp, `syncStream` and `WorkNCCL::synchronize`, torch 2.0 to 2.15). `Work.wait` leaves
no trace there, so the lines between the call and the place at which the rank now stands have to tell.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence

from ..beacon.record import FrameEntry, Record
from ..program.syntax import scope_at
from .groups import Place
from .source import Sources

WAIT = "wait"
"""The method of a handle that waits for it, and the ending of functions that wait for several."""


def open_handles(record: Record, sources: Sources) -> frozenset[Place]:
    """The collectives whose handles were given to the user's code, which has not waited for them."""
    history = record.get("call_history")
    if history is None:
        return frozenset()
    reached = {
        (file, function): line
        for thread in record["threads"]
        for file, line, function, _ in reversed(thread["frames"])
    }
    return frozenset(
        (call["group"], call["number"])
        for call in history["newest"]
        if call.get("handle") and not _is_waited_for(history["places"][call["place"]], reached, sources)
    )


def _is_waited_for(
    frames: Sequence[FrameEntry], reached: Mapping[tuple[str, str], int], sources: Sources
) -> bool:
    """True where a function of the user's waits after its call; one that has returned, at any line.

    Args:
        frames: of the user's, in the call; reached: file and function -> the line that is reached now.
    """
    return any(
        line <= wait <= reached.get((file, function), wait)
        for file, line, function, _ in frames
        for wait in _waits_around(sources.tree(file), line)
    )


@functools.lru_cache(maxsize=512)
def _waits_around(tree: ast.AST, line: int) -> tuple[int, ...]:
    """The lines in which the innermost function around a line, or the module, waits for something."""
    return tuple(
        node.end_lineno or node.lineno
        for node in ast.walk(scope_at(tree, line))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2].startswith(WAIT)
    )
