"""The locks that a thread can name, and which thread of its own process it waits for."""

from __future__ import annotations

import _thread
import re
from types import FrameType
from typing import TYPE_CHECKING, Any, List, Optional

from . import stacks, variables

if TYPE_CHECKING:
    from .record import Locks

LOCKS = (type(_thread.allocate_lock()), _thread.RLock)

FRAMES = 8
"""Frames of the user's, innermost first, whose locks are told."""

THREADING = "threading.py"

_OWNER = re.compile(r"owner=(\d+)")
"""The thread that holds a `_thread.RLock`, 0 for none: `rlock_repr` in CPython's _threadmodule.c."""


def in_stack(frame: Optional[FrameType]) -> List[Locks]:
    """The locks that the user's frames of a stack can name, innermost frame first."""
    entries: List[Locks] = []
    while frame is not None and len(entries) < FRAMES:
        if stacks.is_users(frame):
            values = variables.named_values(frame).items()
            locks = {name: lock for name, value in values if (lock := _lock(value)) is not None}
            owners = {id(lock): _OWNER.search(repr(lock)) for lock in locks.values()}
            if locks:
                entries.append(
                    {
                        "file": frame.f_code.co_filename,
                        "line": frame.f_lineno,
                        "names": {name: id(lock) for name, lock in locks.items()},
                        "owners": {lock: int(match[1]) for lock, match in owners.items() if match},
                    }
                )
        frame = frame.f_back
    return entries


def wanted(frame: FrameType) -> Optional[int]:
    """The lock that a thread waits for inside `threading`, as it begins to use a condition."""
    if frame.f_code.co_name != "__enter__" or not frame.f_code.co_filename.endswith(THREADING):
        return None
    lock = _lock(variables.peek(frame).get("self"))
    return None if lock is None else id(lock)


def joined(frame: Optional[FrameType]) -> Optional[int]:
    """Python's id of the thread whose end a thread waits for."""
    for _ in range(3):
        if frame is None or stacks.is_users(frame):
            return None
        if frame.f_code.co_name == "join" and frame.f_code.co_filename.endswith(THREADING):
            ident = getattr(variables.peek(frame).get("self"), "ident", None)
            return ident if isinstance(ident, int) else None
        frame = frame.f_back
    return None


def _lock(value: Any) -> Any:
    """The lock that a value is, or that a condition has; None for anything else."""
    if type(value).__module__ == "threading" and type(value).__name__ == "Condition":
        value = getattr(value, "_lock", None)
    return value if isinstance(value, LOCKS) else None
