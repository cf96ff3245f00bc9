"""The calls of `torch.distributed` that this process makes through Python, noted as they are made.

Each function of the network asks, by its module's name for it, whether the rank takes part
(`_rank_not_in_group`, torch 2.0 to 2.15). That name stands for a function of ours, which returns before
the call begins, so that no frame of the beacon is in a traceback of the call.

Not seen are calls that C++ makes (DDP's reducer), and functional collectives, which compiled code uses.
"""

from __future__ import annotations

import _thread
import functools
import itertools
import sys
import time
from collections import deque
from types import CodeType, FrameType, FunctionType
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Deque,
    Dict,
    Iterator,
    List,
    Optional,
    Protocol,
    Set,
    Tuple,
)

from . import scalars, signal_handlers, stacks
from .torch_names import (
    ASKS_MEMBERSHIP,
    CALL_WRAPPER,
    CALLS,
    DISTRIBUTED,
    EVAL_FRAME,
    P2P_CALLS,
    PACKAGE,
    default_group,
    label_of,
    name_in,
)
from .variables import may_hold_locals, peek

if TYPE_CHECKING:
    from .record import CallHistory, FrameEntry, LoggedCall

KEPT = 64
"""Calls that are kept, the newest ones."""

MOST_VALUES = 32
"""Values that are kept of one call: those of the user's innermost frames come first."""

USERS_FRAMES = 8
"""Frames of the user's that are kept of one call."""

MOST_GROUPS, LONGEST_LABEL, LONGEST_NAME = 256, 60, 60
"""Groups in which calls are counted, and characters of their labels and of a variable's name: without
limits for these the size of the log would have no bound."""

SHARE, BURST, ENOUGH = 0.001, 0.01, 0.0005
"""Share of the time that reading values may take; the seconds that it may take at once, enough for the
first few calls of a rank on a slow machine, which cost most; and the saved-up seconds with which twice
as many calls are looked at again. Where calls come faster than that allows, only those of every second,
fourth, ... number are looked at: the numbers of a slow rank are among those of a faster one, so that the
same calls can be compared."""

COUNTS_EVERY = 1.0
"""Seconds for which the same counts are told while calls are made: a record that has not changed is not
written again."""

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
        handle: bool,
    ) -> None:
        self.operation, self.group, self.number = operation, group, number
        self.frames, self.values, self.handle = frames, values, handle
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
            "handle": self.handle,
        }


class CallLog:
    """The calls of one process.

    Attributes:
        fault: why a call could not be noted; empty where all could.
        counters: whether it sends or receives, and the place of its group in memory -> gives the number
            of a call: an iterator in C, which no other thread can come between.
        mask: only calls whose number has none of these bits are noted.
        whole: True where none has been missed: calls were noted before the process joined.
        order: the newest calls, noted or not: counter, number and operation.
    """

    def __init__(self, whole: bool = True) -> None:
        self.fault = ""
        self.mask = 0
        self.whole = whole
        self.counters: Dict[Tuple[bool, int], Iterator[int]] = {}
        self._of_labels: Dict[Tuple[bool, str], Iterator[int]] = {}
        self._newest: Deque[_Call] = deque(maxlen=KEPT)
        self.order: Deque[Tuple[Iterator[int], int, str]] = deque(maxlen=KEPT)
        self._credit, self._credited = BURST, time.monotonic()
        self._last: Optional[_Call] = None
        self._places: List[List[FrameEntry]] = []
        self._entries: List[LoggedCall] = []
        self._ordered: List[Tuple[str, int, str]] = []
        self._counts_alone: Optional[CallHistory] = None
        self._counted_at = 0.0

    @property
    def sends(self) -> bool:
        """True once there has been a send or a receive."""
        return any(p2p for p2p, _ in list(self._of_labels))

    def note(self, frame: FrameType, number: int, group: Any) -> None:
        """Note a call with what its caller's frames can name. It raises only what a signal handler has.

        Args:
            frame: of torch's function; number: the count of the call, 0 in a group without a counter;
                group: that it was given.
        """
        try:
            operation, caller = _outermost(frame)
            label = "default" if group is None else label_of(group)
            self._note(operation, number, group, label, caller, frame)
        except Exception as problem:  # a call of the job's does not fail because of it
            if signal_handlers.raised(problem):
                raise
            self.fault = repr(problem)[:200]

    def note_new_group(self, wrapper: FrameType) -> None:
        """Note a call of `new_group` that all ranks make. It raises only what a signal handler has.

        Args:
            wrapper: torch's frame around it, which has its arguments.
        """
        try:
            if peek(wrapper).get("kwargs", {}).get("use_local_synchronization"):
                return
            counter = self.counters.get((False, id(None)))
            self._note("new_group", next(counter, 0) if counter else 0, None, "default", wrapper.f_back)
        except Exception as problem:
            if signal_handlers.raised(problem):
                raise
            self.fault = repr(problem)[:200]

    def _note(
        self,
        operation: str,
        number: int,
        group: Any,
        label: str,
        caller: Optional[FrameType],
        torch_frame: Optional[FrameType] = None,
    ) -> None:
        key = (operation in P2P_CALLS, label[:LONGEST_LABEL])
        number = self._numbered(key, number, group)
        if number:
            self.order.append((self._of_labels[key], number, operation))
        spent = 0.0
        if number and not number & self.mask:
            began = time.thread_time()
            handle = _gives_handle(torch_frame, caller)
            self._newest.append(_Call(operation, key[1], number, *_frames(caller), handle))
            spent = time.thread_time() - began
        self._pay(spent)

    def _numbered(self, key: Tuple[bool, str], number: int, group: Any) -> int:
        """The number of a call in the group of that label; 0 where no more groups can be counted.

        A group may be the first at its place in memory, or another one than before.
        """
        place, counter = (key[0], id(group)), self._of_labels.get(key)
        if counter is not None and number and counter is self.counters.get(place):
            return number
        if counter is None and len(self._of_labels) >= MOST_GROUPS:
            return 0
        if len(self.counters) >= 2 * MOST_GROUPS:
            self.counters.clear()
        self.counters[place] = counter = self._of_labels.setdefault(key, itertools.count(1))
        return next(counter)

    def _pay(self, spent: float) -> None:
        """Take what reading has cost from what may be spent, and read more or less often from now on."""
        now = time.monotonic()
        credit = min(BURST, self._credit + SHARE * (now - self._credited)) - spent
        if credit < 0:
            self.mask = 2 * self.mask + 1
        elif credit > ENOUGH:
            self.mask //= 2
        self._credit, self._credited = max(0.0, credit), now

    def history(self, stands: Callable[[int, float], bool]) -> Optional[CallHistory]:
        """What the record says of the calls; None before the first.

        Args:
            stands: whether a thread that was seen to move at some time has not moved for a moment. While
                that of the newest call moves, only the counts are given, and these again for
                `COUNTS_EVERY` seconds: the record would change from look to look.
        """
        if not self._of_labels:
            return None
        newest, now = list(self._newest), time.monotonic()
        last = newest[-1] if newest and stands(newest[-1].thread, newest[-1].at) else None
        if last is None and self._counts_alone is not None and now - self._counted_at < COUNTS_EVERY:
            return self._counts_alone
        if last is not self._last:
            numbers: Dict[Tuple[FrameEntry, ...], int] = {}
            calls = newest if last is not None else []
            self._last = last
            self._entries = [call.entry(numbers.setdefault(call.frames, len(numbers))) for call in calls]
            self._places = [list(frames) for frames in numbers]
            self._ordered = self._in_order() if last is not None else []
        history: CallHistory = {
            "collectives": self._counts(p2p=False),
            "p2p": self._counts(p2p=True),
            "places": self._places,
            "newest": self._entries,
            "whole": self.whole,
            "order": self._ordered,
        }
        self._counts_alone, self._counted_at = None if last else history, now
        return history

    def _in_order(self) -> List[Tuple[str, int, str]]:
        """Group, number and operation of the newest collectives, oldest first."""
        labels = {id(counter): label for (p2p, label), counter in self._of_labels.items() if not p2p}
        return [
            (labels[id(counter)], number, operation)
            for counter, number, operation in tuple(self.order)
            if id(counter) in labels
        ]

    def _counts(self, *, p2p: bool) -> Dict[str, int]:
        """How many calls each group has seen: one less than its counter, whose text tells the next."""
        counters = list(self._of_labels.items())
        return {
            label: int(repr(counter)[len("count(") : -1]) - 1
            for (kind, label), counter in counters
            if kind == p2p
        }


def _outermost(frame: FrameType) -> Tuple[str, Optional[FrameType]]:
    """The operation of torch's that a call is a part of, and the frame that has called it.

    `send` calls `isend`, and wrappers stand between.
    """
    operation, file, caller = frame.f_code.co_name, frame.f_code.co_filename, frame.f_back
    while caller is not None:
        code = caller.f_code
        if code.co_filename == file:
            operation = code.co_name if code.co_name in CALLS else operation
        elif not code.co_filename.endswith(CALL_WRAPPER):
            break
        caller = caller.f_back
    return operation, caller


def _gives_handle(torch_frame: Optional[FrameType], caller: Optional[FrameType]) -> bool:
    """True for an asynchronous call of the user's own; that of a library's waits for its handle."""
    if torch_frame is None or caller is None or not stacks.is_users(caller):
        return False
    return peek(torch_frame).get("async_op") is True


def _frames(frame: Optional[FrameType]) -> Tuple[Tuple[FrameEntry, ...], Values]:
    """The user's innermost frames of a stack, and the plain values of each."""
    entries: List[FrameEntry] = []
    values: Values = []
    budget = MOST_VALUES
    for _ in range(stacks.MAX_FRAMES):
        if frame is None or len(entries) == USERS_FRAMES:
            break
        if stacks.is_users(frame):
            entries.append(stacks.entry(frame, frame.f_lineno))
            plain = scalars.plain(frame, budget) if budget and not may_hold_locals(frame) else []
            values.append([pair for pair in plain if len(pair[0]) <= LONGEST_NAME])
            budget -= len(values[-1])
        frame = frame.f_back
    return tuple(entries), values


class _Functions:
    """The functions of torch's that make calls, by the places of their code in memory.

    Attributes:
        kinds: of those that do the work, whether they send or receive.
        inner: those of them that others of them call.
        asking: those that ask whether the rank takes part.
        wrappers: what stands around them.
    """

    def __init__(self) -> None:
        self.kinds: Dict[int, bool] = {}
        self.inner: Set[int] = set()
        self.asking: Set[int] = set()
        self.wrappers: Set[int] = set()
        self._codes: List[CodeType] = []  # so that no other code comes to their places
        code_by_name: Dict[str, CodeType] = {}
        for name in CALLS:
            function = name_in(DISTRIBUTED, name)
            while type(function) is FunctionType:
                code, wrapped = function.__code__, getattr(function, "__wrapped__", None)
                self._codes.append(code)
                if wrapped is not None:
                    self.wrappers.add(id(code))
                else:
                    self.kinds[id(code)] = name in P2P_CALLS
                    if ASKS_MEMBERSHIP in code.co_names:
                        self.asking.add(id(code))
                        code_by_name[name] = code
                function = wrapped
        for code in code_by_name.values():
            self.inner.update(id(code_by_name[name]) for name in code.co_names if name in code_by_name)

    def is_part(self, frame: FrameType) -> bool:
        """True for a part of another call: `all_gather_object` gathers twice."""
        caller = frame.f_back
        while caller is not None and id(caller.f_code) in self.wrappers:
            caller = caller.f_back
        return caller is not None and id(caller.f_code) in self.asking


class Owner(Protocol):
    """What has the log of the process, which is another one in a forked child."""

    calls: CallLog


def watch(owner: Owner) -> bool:
    """Have each call noted, once torch is loaded.

    `torch.compile` must make of the job what it makes of it without us. It traces through some functions
    of the network, and so through ours: it takes `is_dynamo_compiling` for true, and never meets the
    note. It also compiles whatever a compiled function calls in Python, but for the files of torch: ours
    goes by torch's file, and the note is taken while nothing is compiled.

    Args:
        owner: has the log of the process.

    Returns:
        True when the watch is set, False while torch is not wholly loaded, or has no such function.
    """
    asks = name_in(DISTRIBUTED, ASKS_MEMBERSHIP)
    spec = getattr(sys.modules.get("torch"), "__spec__", None)
    if type(asks) is not FunctionType or getattr(spec, "_initializing", False):
        return False
    owner.calls.whole = default_group() is None
    functions = _Functions()
    kinds, inner, is_part = functions.kinds, functions.inner, functions.is_part
    compiles = name_in(EVAL_FRAME, "set_eval_frame") or bool
    is_compiling = getattr(name_in("torch", "compiler"), "is_dynamo_compiling", bool)
    frame_at = sys._getframe

    # Most calls are only counted, which is to cost a few microseconds in a rank whose caches its own
    # work fills: by C alone, but for what torch does itself. The watched function is a part of that.
    def noting(group: Any) -> Any:
        outside = asks(group)
        if outside is not False or is_compiling():
            return outside
        frame = frame_at(1)
        code = id(frame.f_code)
        p2p = kinds.get(code)
        if p2p is None or (code in inner and is_part(frame)):
            return outside
        log = owner.calls
        counter = log.counters.get((p2p, id(group)))
        number = 0 if counter is None else next(counter)
        if not number & log.mask:
            before = compiles(None)
            try:
                log.note(frame, number, group)
            finally:
                if before is not None:
                    compiles(before)
        elif counter is not None:
            log.order.append((counter, number, frame.f_code.co_name))
        return outside

    noting.__code__ = noting.__code__.replace(co_filename=asks.__code__.co_filename)
    functools.update_wrapper(noting, asks)
    for module in (DISTRIBUTED, PACKAGE):
        if name_in(module, ASKS_MEMBERSHIP) is asks:
            setattr(sys.modules[module], ASKS_MEMBERSHIP, noting)
    return True
