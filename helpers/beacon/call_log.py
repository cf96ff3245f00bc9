"""The calls of `torch.distributed` that this process makes through Python, noted as they are made."""

from __future__ import annotations

import sys
import time
from collections import deque
from types import FrameType
from typing import Any, Callable, Deque, Dict, List, Optional

from . import scalars, stacks, torch_names
from .record import CallMade, FrameEntry

KEPT = 64
"""Calls that are kept, the newest ones."""

MOST_VALUES = 32
"""Values that are kept of one call: those of the user's innermost frames come first."""

USERS_FRAMES, MOST_FRAMES = 4, 60
"""Frames of the user's that are kept of one call, and frames that are looked at to find them."""

SHARE = 0.002
"""Share of the time that may go into what a call can name. In a program that makes a thousand calls a
second only those of every second, fourth, ... number are looked at: of the same numbers on all ranks, or
of some of them, so that the same calls can be compared."""


class CallLog:
    """The calls of one process.

    Attributes:
        counts: label of a group -> how many calls have been made in it.
        newest: the newest calls that were looked at, oldest first.
        fault: why a call could not be noted; empty where all could.
    """

    def __init__(self) -> None:
        self.counts: Dict[str, int] = {}
        self.newest: Deque[CallMade] = deque(maxlen=KEPT)
        self.fault = ""
        self._begun = time.monotonic()
        self._spent = 0.0
        self._stride = 1

    def note(self, frame: FrameType, group: Any) -> None:
        """Note a call, unless it is a part of another one.

        Args:
            frame: of torch's function; group: that it was given.
        """
        operation = frame.f_code.co_name
        if operation not in torch_names.CALLS:
            return
        caller = _caller(frame)
        if caller is not None and caller.f_code.co_filename == frame.f_code.co_filename:
            if torch_names.ASKS_MEMBERSHIP in caller.f_code.co_names:
                return  # it has been noted itself
            operation, caller = caller.f_code.co_name, _caller(caller)
        label = torch_names.label_of(group)
        number = self.counts[label] = self.counts.get(label, 0) + 1
        now = time.monotonic()
        allowed = SHARE * (now - self._begun) + SHARE
        if self._stride > 1 and self._spent < allowed / 4:
            self._stride //= 2
        if number % self._stride:
            return
        self.newest.append(_call(operation, label, number, now, caller))
        self._spent += time.monotonic() - now
        if self._spent > allowed:
            self._stride *= 2


def _caller(frame: FrameType) -> Optional[FrameType]:
    """The frame that has called a function of torch's, without those of torch's wrappers around it."""
    caller = frame.f_back
    while caller is not None and caller.f_code.co_name == "wrapper":
        caller = caller.f_back
    return caller


def _call(operation: str, group: str, number: int, now: float, caller: Optional[FrameType]) -> CallMade:
    frames: List[FrameEntry] = []
    values: List[Dict[str, str]] = []
    left = MOST_VALUES
    for _ in range(MOST_FRAMES):
        if caller is None or len(frames) == USERS_FRAMES:
            break
        if stacks.is_users(caller):
            named = scalars.scalars(caller)
            kept = {name: named[name] for name in list(named)[:left]}
            left -= len(kept)
            frames.append(stacks.entry(caller, caller.f_lineno))
            values.append(kept)
        caller = caller.f_back
    return {
        "op": operation,
        "group": group,
        "number": number,
        "at": now,
        "frames": frames,
        "values": values,
    }


def watch(log: Callable[[], CallLog]) -> bool:
    """Have each call noted, once torch is loaded.

    Each function of `torch.distributed` asks, by its module's name for it, whether the rank is in the
    group (2.0 to 2.15): that name stands for a function of ours, which returns before the call begins,
    so that no frame of the beacon is in any traceback.

    Args:
        log: gives the log of the process, which is another one in a forked child.

    Returns:
        True when the watch is set, False while torch has not come so far.
    """
    asks = torch_names.name_in(torch_names.DISTRIBUTED, torch_names.ASKS_MEMBERSHIP)
    if asks is None:
        return False

    def noting(group: Any) -> Any:
        noted = log()
        try:
            noted.note(sys._getframe(1), group)
        except Exception as problem:  # a call of the job's does not fail because of it
            noted.fault = repr(problem)[:200]
        return asks(group)

    setattr(sys.modules[torch_names.DISTRIBUTED], torch_names.ASKS_MEMBERSHIP, noting)
    return True
