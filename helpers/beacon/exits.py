"""How this process and the children it waits for end, without touching `sys.excepthook`.

An uncaught exception is read from `sys.last_value`, which the interpreter sets before it calls any
hook. `os.waitpid`, `os._exit`, `os.kill` and `sys.exit` are replaced (see `noting`): the status of a
child is noted as it comes, and a process that is about to end (or stop) itself says where it is.
"""

from __future__ import annotations

import _thread
import functools
import gc
import os
import sys
import time
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from . import calls, cells, noting, scalars, signal_handlers, stacks, torch_names
from .membership import ranks_of

if TYPE_CHECKING:
    from .record import Error, FrameEntry

MESSAGE_LIMIT = 8000

SAME_PLACE = 1.0
"""Seconds within which a second `os.kill` at one place is not noted: a loop that asks who is alive."""

MOST_WAITS = 256
"""Calls of `os.waitpid` that are kept until their result is read: more than threads are in one."""

exit_stack: List[FrameEntry] = []
"""The stack of the main thread's newest call of `sys.exit`, innermost frame first."""

exit_values: Dict[int, Dict[str, str]] = {}
"""The plain values that its frames could name."""

handed_over: List[Error] = []
"""The exception that a process of `mp.spawn` tells its parent alone before it calls `sys.exit`."""

cut_off: List[FrameEntry] = []
"""The stack of a call of `os._exit`, which ends the process at once, innermost frame first."""

MOST_REAPED = 256
"""Children whose status is kept: a job may start any number of them."""

_reaped: Dict[int, int] = {}
_waits: List[Any] = []


def watch(last_words: Callable[[], None]) -> None:
    """Note the status of children from now on; call `last_words` before the process ends itself."""
    waitpid = os.waitpid
    main = _thread.get_ident()
    killed_at: List[Tuple[Any, int, float]] = [(None, 0, 0.0)]

    def waits(_: FrameType) -> Any:
        """The cache, which is written in C, keeps the result until `reaped` looks."""
        reaped()
        call = functools.lru_cache(maxsize=None)(waitpid)
        _waits.append(call)
        del _waits[:-MOST_WAITS]
        return call

    def leaves(frame: FrameType) -> None:
        cut_off[:] = stacks.entries(frame)
        last_words()

    def kills(frame: FrameType) -> None:
        """Whom, is known to the call alone: it may be this process."""
        (code, at, since), now = killed_at[0], time.monotonic()
        if (code, at) != (frame.f_code, frame.f_lasti) or now - since > SAME_PLACE:
            killed_at[0] = frame.f_code, frame.f_lasti, now
            last_words()

    def exits(frame: FrameType) -> None:
        if _thread.get_ident() == main:
            exit_stack[:] = stacks.entries(frame)
            exit_values.clear()
            exit_values.update(stacks.values(frame, main))
            handled = sys.exc_info()[1]
            if handled is not None and torch_names.is_told_to_parent_alone(frame):
                handed_over[:] = [_entry(handled, _text)]

    system = sys.modules[os.name]
    noting.replace("waitpid", waits, os, system)
    noting.replace("_exit", leaves, os, system)
    noting.replace("kill", kills, os, system)
    noting.replace("exit", exits, sys)


def reaped() -> Dict[int, int]:
    """Wait status of the newest children that this process has waited for."""
    for call in list(_waits):
        for cache in gc.get_referents(call):
            for arguments, result in cache.items() if type(cache) is dict else ():
                if type(arguments) is tuple:
                    _waits[:] = [wait for wait in _waits if wait is not call]
                    pid, status = result
                    if pid > 0 and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
                        _reaped[pid] = status
    for pid in list(_reaped)[:-MOST_REAPED]:
        del _reaped[pid]
    return dict(_reaped)


def forget() -> None:
    """Begin anew in a forked child."""
    _reaped.clear()
    _waits.clear()


def uncaught(ended: bool = False) -> Optional[Error]:
    """The exception that is ending this process, or None.

    Args:
        ended: True at an orderly end, which the failure of a cell may have brought about.
    """
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    ends = isinstance(error, BaseException) and not isinstance(error, SystemExit)
    if error is None or not ends or cells.outlives(error, ended):
        return handed_over[0] if handed_over else None
    return _entry(error, _text)


def handled(ident: int) -> Optional[Error]:
    """The exception that a thread is handling, and what it hides; runs nothing of the job's."""
    error = scalars.exception(ident)
    control = (SystemExit, GeneratorExit, StopIteration, StopAsyncIteration)
    return None if error is None or isinstance(error, control) else _entry(error, scalars.message)


def _entry(error: BaseException, text: Callable[[BaseException], str]) -> Error:
    """An exception, and what it hides.

    Args:
        text: tells that of an exception.
    """
    masked: List[str] = []
    first = error
    for _ in range(20):
        earlier = first.__context__
        if earlier is None or first.__suppress_context__ or _raised_for(first) is not None:
            break
        if isinstance(earlier, (SystemExit, GeneratorExit)):
            break
        masked.append(_line(first, text))
        first = earlier
    return {
        "type": type(first).__name__,
        "message": text(first)[:MESSAGE_LIMIT],
        "frames": _frames(first, error),
        "values": stacks.traceback_values(first.__traceback__),
        "needed": _needed(first.__traceback__),
        "time": time.monotonic(),
        "masked": masked,
        "caused_by": _caused_by(first, text)[:MESSAGE_LIMIT],
    }


def _caused_by(error: BaseException, text: Callable[[BaseException], str]) -> str:
    """The first of the exceptions that `error` was raised for; empty for none."""
    root = error
    for _ in range(20):
        earlier = _raised_for(root)
        if earlier is None or isinstance(earlier, (SystemExit, GeneratorExit)):
            break
        root = earlier
    # `multiprocessing` hands the text of a traceback over as an exception; it is that of `error`.
    return "" if root is error or type(root).__name__.endswith("RemoteTraceback") else _line(root, text)


def _raised_for(error: BaseException) -> Optional[BaseException]:
    """The exception that `error` translates, by `raise ... from` or in the handler of it."""
    if error.__cause__ is not None or error.__suppress_context__:
        return error.__cause__
    earlier = error.__context__
    return earlier if earlier is not None and _raised_by_handler(error, earlier) else None


def _raised_by_handler(later: BaseException, earlier: BaseException) -> bool:
    """True when the very frame that caught `earlier` raised `later`: a deliberate translation.

    An exception raised deeper, by something that the handler or a `finally` calls, is an accident on
    the way out: it hides the first one.
    """
    caught = earlier.__traceback__
    innermost: Optional[TracebackType] = later.__traceback__
    while innermost is not None and innermost.tb_next is not None:
        innermost = innermost.tb_next
    return caught is not None and innermost is not None and caught.tb_frame is innermost.tb_frame


def _frames(error: BaseException, last: BaseException) -> List[FrameEntry]:
    """The frames of `error`, innermost first, out to the program's own.

    The traceback of an exception that was caught begins in the frame that caught it. The calls that
    led to that frame are in the tracebacks of the exceptions raised later, the outermost being
    `last`.
    """
    frames = stacks.traceback_entries(error.__traceback__)
    chain = [last]
    while chain[-1] is not error and chain[-1].__context__ is not None:
        chain.append(chain[-1].__context__)
    outermost = error.__traceback__
    for later in chain[-2::-1]:
        above: List[FrameEntry] = []
        link = later.__traceback__
        while outermost and link and link.tb_frame is not outermost.tb_frame:
            above.append(stacks.entry(link.tb_frame, link.tb_lineno))
            link = link.tb_next
        if outermost and link:
            frames += above[::-1]
            outermost = later.__traceback__
    if isinstance(error, SyntaxError) and error.filename and not frames:
        frames = [(error.filename, error.lineno or 1, "<module>", True)]
    return frames


def _needed(traceback: Optional[TracebackType]) -> List[int]:
    """The ranks that the failed call of torch's needed: its peers, or the members of its group."""
    below: List[calls.LiveFrame] = []
    while traceback is not None:
        frame = traceback.tb_frame
        below = [] if stacks.is_users(frame) else [calls.LiveFrame(frame), *below]
        traceback = traceback.tb_next
    call = calls.torch_call(below)
    return [] if call is None else call["peers"] or ranks_of(call)


def _line(error: BaseException, text: Callable[[BaseException], str]) -> str:
    lines = text(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as problem:
        if signal_handlers.raised(problem):
            raise
        return ""
