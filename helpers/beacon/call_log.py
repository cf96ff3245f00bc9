"""The calls of `torch.distributed` that this process makes through Python, noted as they are made.

Each function of the network asks, by its module's name for it, whether the rank takes part
(`_rank_not_in_group`, torch 2.0 to 2.15). That name stands for a function of ours, which returns before
the call begins, so that no frame of the beacon is in a traceback of the call.

Not seen are calls that C++ makes (DDP's reducer), and functional collectives, which compiled code uses.
"""

from __future__ import annotations

import _thread
import functools
import sys
import time
from collections import deque
from types import FrameType, FunctionType
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from . import scalars, stacks
from .record import CallHistory, FrameEntry, LoggedCall
from .torch_names import (
    ASKS_MEMBERSHIP,
    CALL_WRAPPER,
    CALLS,
    DISTRIBUTED,
    EVAL_FRAME,
    P2P_CALLS,
    PACKAGE,
    label_of,
    name_in,
)
from .variables import may_hold_locals, peek

KEPT = 64
"""Calls that are kept, the newest ones."""

MOST_VALUES = 32
"""Values that are kept of one call: those of the user's innermost frames come first."""

USERS_FRAMES = 8
"""Frames of the user's that are kept of one call."""

MOST_GROUPS, LONGEST_LABEL, LONGEST_NAME = 256, 60, 60
"""Groups in which calls are counted, and characters of their labels and of a variable's name: without
limits for these the size of the log would have no bound."""

SHARE, BURST = 0.002, 0.001
"""Share of the time that reading values may take, and the seconds that it may take at once. Where calls
come faster than that allows, only those of every second, fourth, ... number are looked at: the numbers
of a slow rank are among those of a faster one, so that the same calls can be compared."""

Values = List[List[Tuple[str, Any]]]
"""Of each frame, names and plain values."""


class _Call:
    """A call, with the values as they were: none of them can change or holds anything else alive."""

    def __init__(
        self,
        operation: str,
        group: str,
        number: int,
        frames: Tuple[FrameEntry, ...],
        values: Values,
    ) -> None:
        self.operation, self.group, self.number = operation, group, number
        self.frames, self.values = frames, values
        self.at, self.thread = time.monotonic(), _thread.get_ident()

    def entry(self, place: int) -> LoggedCall:
        """The call as the record has it; `place` is the index of its frames."""
        return {
            "op": self.operation,
            "group": self.group,
            "number": self.number,
            "at": self.at,
            "thread": self.thread,
            "place": place,
            "values": [scalars.texts(values) for values in self.values],
        }


class CallLog:
    """The calls of one process.

    Attributes:
        fault: why a call could not be noted; empty where all could.
    """

    def __init__(self) -> None:
        self.fault = ""
        self._collectives: Dict[str, int] = {}
        self._p2p: Dict[str, int] = {}
        # A signal handler of the job's may make a call while its thread is here.
        self._counting = _thread.RLock()
        self._newest: Deque[_Call] = deque(maxlen=KEPT)
        self._stride = 1
        self._credit, self._credited = BURST, time.monotonic()
        self._last: Optional[_Call] = None
        self._places: List[List[FrameEntry]] = []
        self._entries: List[LoggedCall] = []

    def note(self, frame: FrameType, group: Any) -> None:
        """Note a call, unless it is a part of another one. It never raises an `Exception`.

        Args:
            frame: of torch's function; group: that it was given.
        """
        try:
            operation = frame.f_code.co_name
            if operation in CALLS:
                operation, caller = _outermost(operation, frame)
                if operation:
                    self._count(operation, "default" if group is None else label_of(group), caller)
        except Exception as problem:  # a call of the job's does not fail because of it
            self.fault = repr(problem)[:200]

    def note_new_group(self, wrapper: FrameType) -> None:
        """Note a call of `new_group` that all ranks make. It never raises an `Exception`.

        Args:
            wrapper: torch's frame around it, which has its arguments.
        """
        try:
            if not peek(wrapper).get("kwargs", {}).get("use_local_synchronization"):
                self._count("new_group", "default", wrapper.f_back)
        except Exception as problem:
            self.fault = repr(problem)[:200]

    def _count(self, operation: str, group: str, caller: Optional[FrameType]) -> None:
        """Count a call, and keep what its caller's frames can name, as far as time allows."""
        counts, group = self._p2p if operation in P2P_CALLS else self._collectives, group[:LONGEST_LABEL]
        if len(counts) >= MOST_GROUPS and group not in counts:
            return
        with self._counting:
            number = counts[group] = counts.get(group, 0) + 1
        if number % self._stride:
            return
        began = time.thread_time()
        self._newest.append(_Call(operation, group, number, *_frames(caller)))
        self._pay(time.thread_time() - began)

    def _pay(self, spent: float) -> None:
        """Take what reading has cost from what may be spent, and read more or less often from now on."""
        now = time.monotonic()
        credit = min(BURST, self._credit + SHARE * (now - self._credited)) - spent
        if credit < 0:
            self._stride *= 2
        elif credit > BURST / 2 and self._stride > 1:
            self._stride //= 2
        self._credit, self._credited = max(0.0, credit), now

    def history(self, stands: Callable[[int, float], bool]) -> Optional[CallHistory]:
        """What the record says of the calls; None before the first.

        Args:
            stands: whether a thread that was seen to move at some time has not moved for a moment. While
                that of the newest call moves, only the counts are given: the calls would change from
                look to look.
        """
        if not self._collectives and not self._p2p:
            return None
        newest = list(self._newest)
        last = newest[-1] if newest and stands(newest[-1].thread, newest[-1].at) else None
        if last is not self._last:
            numbers: Dict[Tuple[FrameEntry, ...], int] = {}
            calls = newest if last is not None else []
            self._last = last
            self._entries = [call.entry(numbers.setdefault(call.frames, len(numbers))) for call in calls]
            self._places = [list(frames) for frames in numbers]
        return {
            "collectives": dict(self._collectives),
            "p2p": dict(self._p2p),
            "places": self._places,
            "newest": self._entries,
        }


def _outermost(operation: str, frame: FrameType) -> Tuple[str, Optional[FrameType]]:
    """The operation that a call of torch's is a part of, and the frame that has called it.

    The operation is empty for a part of a call that has asked before: `all_gather_object` gathers twice.
    """
    own, caller = frame.f_code.co_filename, frame.f_back
    while caller is not None:
        code = caller.f_code
        if code.co_filename == own:
            if code.co_name in CALLS:
                if ASKS_MEMBERSHIP in code.co_names:
                    return "", None
                operation = code.co_name
        elif not code.co_filename.endswith(CALL_WRAPPER):
            break
        caller = caller.f_back
    return operation, caller


def _frames(frame: Optional[FrameType]) -> Tuple[Tuple[FrameEntry, ...], Values]:
    """The user's innermost frames of a stack, and the plain values of each."""
    entries: List[FrameEntry] = []
    values: Values = []
    left = MOST_VALUES
    for _ in range(stacks.MAX_FRAMES):
        if frame is None or len(entries) == USERS_FRAMES:
            break
        if stacks.is_users(frame):
            entries.append(stacks.entry(frame, frame.f_lineno))
            plain = scalars.plain(frame, left) if left and not may_hold_locals(frame) else []
            values.append([pair for pair in plain if len(pair[0]) <= LONGEST_NAME])
            left -= len(values[-1])
        frame = frame.f_back
    return tuple(entries), values


def watch(log: Callable[[], CallLog]) -> bool:
    """Have each call noted, once torch is loaded.

    `torch.compile` must make of the job what it makes of it without us. It traces through some functions
    of the network, and so through ours: it takes `is_dynamo_compiling` for true, and never meets the
    note. It also compiles whatever a compiled function calls in Python, but for the files of torch: ours
    goes by torch's file, and the note is taken while nothing is compiled.

    Args:
        log: gives the log of the process, which is another one in a forked child.

    Returns:
        True when the watch is set, False while torch has not come so far, or has no such function.
    """
    asks = name_in(DISTRIBUTED, ASKS_MEMBERSHIP)
    if type(asks) is not FunctionType:
        return False
    torch, compiles = sys.modules.get("torch"), name_in(EVAL_FRAME, "set_eval_frame") or bool

    def noting(group: Any) -> Any:
        outside = asks(group)
        compiler = getattr(torch, "compiler", None)
        if outside is False and not getattr(compiler, "is_dynamo_compiling", bool)():
            before = compiles(None)
            try:
                log().note(sys._getframe(1), group)
            finally:
                if before is not None:
                    compiles(before)
        return outside

    noting.__code__ = noting.__code__.replace(co_filename=asks.__code__.co_filename)
    functools.update_wrapper(noting, asks)
    for module in (DISTRIBUTED, PACKAGE):
        if name_in(module, ASKS_MEMBERSHIP) is asks:
            setattr(sys.modules[module], ASKS_MEMBERSHIP, noting)
    return True
