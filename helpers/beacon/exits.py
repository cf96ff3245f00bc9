"""How this process and the children it waits for end, without touching `sys.excepthook`.

An uncaught exception is read from `sys.last_value`, which the interpreter sets before it calls any
hook. `os.waitpid`, `os._exit` and `os.kill` are wrapped: the status of a child is noted as it comes, and
a process that is about to end (or stop) itself says where it is. They still do what they did.
"""

from __future__ import annotations

import _thread
import functools
import os
import sys
import time
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional

from . import calls, stacks, torch_names
from .record import Error, FrameEntry, ranks_of

MESSAGE_LIMIT = 8000

reaped: Dict[int, int] = {}
"""Wait status of every child that this process has waited for."""

left: List[FrameEntry] = []
"""The stack of the main thread's newest call of `sys.exit`, innermost frame first."""

left_values: Dict[int, Dict[str, str]] = {}
"""The plain values that its frames could name."""

handed_over: List[Error] = []
"""The exception that a process of `mp.spawn` tells its parent alone before it calls `sys.exit`."""

cut_off: List[FrameEntry] = []
"""The stack of a call of `os._exit`, which ends the process at once, innermost frame first."""


def watch(last_words: Callable[[], None]) -> None:
    """Note the status of children from now on; call `last_words` before the process ends itself."""
    waitpid, leave, kill, say_exit = os.waitpid, os._exit, os.kill, sys.exit
    main = _thread.get_ident()

    @functools.wraps(waitpid)
    def noting_waitpid(pid: int, options: int) -> Any:
        result = waitpid(pid, options)
        if result[0] > 0 and (os.WIFEXITED(result[1]) or os.WIFSIGNALED(result[1])):
            reaped[result[0]] = result[1]
        return result

    @functools.wraps(leave)
    def noting_exit(status: int) -> Any:
        cut_off[:] = stacks.entries(sys._getframe(1))
        last_words()
        leave(status)

    @functools.wraps(kill)
    def noting_kill(pid: int, signal: int) -> None:
        if pid == os.getpid() and signal:
            last_words()
        kill(pid, signal)

    @functools.wraps(say_exit)
    def noting_sys_exit(status: Any = None) -> Any:
        if _thread.get_ident() == main:
            left[:] = stacks.entries(sys._getframe(1))
            left_values.clear()
            left_values.update(stacks.values(sys._getframe(1), main))
            handled = sys.exc_info()[1]
            if handled is not None and torch_names.is_told_to_parent_alone(sys._getframe(1)):
                handed_over[:] = [_told(handled)]
        say_exit(status)

    os.waitpid, os._exit, os.kill = noting_waitpid, noting_exit, noting_kill
    sys.exit = noting_sys_exit


def uncaught() -> Optional[Error]:
    """The exception that is ending this process, or None."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if not isinstance(error, BaseException) or isinstance(error, SystemExit):
        return handed_over[0] if handed_over else None
    return _told(error)


def _told(error: BaseException) -> Error:
    """An exception, and what it hides."""
    masked: List[str] = []
    first = error
    for _ in range(20):
        earlier = first.__context__
        if earlier is None or first.__suppress_context__ or _raised_for(first) is not None:
            break
        if isinstance(earlier, (SystemExit, GeneratorExit)):
            break
        masked.append(_line(first))
        first = earlier
    return {
        "type": type(first).__name__,
        "message": _text(first)[:MESSAGE_LIMIT],
        "frames": _frames(first, error),
        "needed": _needed(first.__traceback__),
        "time": time.monotonic(),
        "masked": masked,
        "caused_by": _caused_by(first)[:MESSAGE_LIMIT],
    }


def _caused_by(error: BaseException) -> str:
    """The first of the exceptions that `error` was raised for; empty for none."""
    root = error
    for _ in range(20):
        earlier = _raised_for(root)
        if earlier is None or isinstance(earlier, (SystemExit, GeneratorExit)):
            break
        root = earlier
    # `multiprocessing` hands the text of a traceback over as an exception; it is that of `error`.
    return "" if root is error or type(root).__name__.endswith("RemoteTraceback") else _line(root)


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
    found = stacks.traceback_entries(error.__traceback__)
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
            found += above[::-1]
            outermost = later.__traceback__
    if isinstance(error, SyntaxError) and error.filename and not found:
        found = [(error.filename, error.lineno or 1, "<module>", True)]
    return found


def _needed(traceback: Optional[TracebackType]) -> List[int]:
    """The ranks that the failed call of torch's needed: its peers, or the members of its group."""
    below: List[calls.LiveFrame] = []
    while traceback is not None:
        frame = traceback.tb_frame
        below = [] if stacks.is_users(frame) else [calls.LiveFrame(frame), *below]
        traceback = traceback.tb_next
    call = calls.torch_call(below)
    return [] if call is None else call["peers"] or ranks_of(call)


def _line(error: BaseException) -> str:
    lines = _text(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""
