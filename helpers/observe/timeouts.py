"""Waits that end by themselves before long, after which the program goes on.

A call may have a timeout of its own, and the program may catch what it then raises. Without a handler
the timeout ends the rank: that is a failure as any hang is, only later. The timeout of a whole group
does not count: it is there to end a hang.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from ..beacon.record import Thread
from ..model.frames import Frame
from ..program.syntax import holds
from .source import Sources

SHORT = 60.0
"""Seconds that a program may be given to go on by itself."""

_CAUGHT = (
    "BaseException",
    "Exception",
    "RuntimeError",
    "DistError",
    "DistStoreError",
    "DistBackendError",
)
_LEAVES = ("sys.exit", "os._exit", "exit", "quit", "os.abort")


def goes_on(thread: Thread, frames: Sequence[Frame], sources: Sources) -> bool:
    """True for a thread in a call with a short timeout whose end the program handles."""
    limit = _limit(thread, sources)
    return limit is not None and limit <= SHORT and any(_handled(frame, sources) for frame in frames)


def _limit(thread: Thread, sources: Sources) -> float | None:
    """Seconds after which the call of a thread gives up; None for never, or if unknown."""
    call, site = thread["call"], thread["site"]
    if call is not None:
        return call["limit"]
    if site is None:
        return None
    limits = (_timeout_of(call, method.value, site["limits"]) for call, method in sources.calls(site))
    return min((limit for limit in limits if limit is not None), default=None)


def _timeout_of(call: ast.Call, store: ast.expr, limits: Mapping[str, float]) -> float | None:
    """The timeout in a call's arguments, else that of the store on which it is called."""
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        seconds = limits.get(ast.unparse(argument), _seconds(argument))
        if seconds is not None:
            return seconds
    return limits.get(ast.unparse(store))


def _seconds(node: ast.expr) -> float | None:
    """The seconds of a call such as `timedelta(minutes=2)`."""
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("timedelta"):
        return None
    try:
        days = [ast.literal_eval(argument) for argument in node.args]
        parts = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
        return timedelta(*days, **parts).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return None


def _handled(frame: Frame, sources: Sources) -> bool:
    """True where the line of a user's frame is in a `try` that catches a timeout and goes on."""
    if not frame.user:
        return False
    for node in ast.walk(sources.tree(frame.file)):
        if isinstance(node, ast.Try) and _within(frame.line, node.body):
            if any(_catches(handler.type) and not _ends(handler.body) for handler in node.handlers):
                return True
        elif isinstance(node, ast.With) and _within(frame.line, node.body):
            calls = [item.context_expr for item in node.items]
            if any(_suppresses(call) for call in calls):
                return True
    return False


def _within(line: int, body: Iterable[ast.stmt]) -> bool:
    return any(holds(part, line) for part in body)


def _suppresses(call: ast.expr) -> bool:
    if not isinstance(call, ast.Call) or not ast.unparse(call.func).endswith("suppress"):
        return False
    return any(_catches(kind) for kind in call.args)


def _catches(kind: ast.expr | None) -> bool:
    """True for an `except` of everything, or of a class that torch raises for a timeout."""
    if kind is None:
        return True
    classes = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(ast.unparse(error).rpartition(".")[2] in _CAUGHT for error in classes)


def _ends(body: Sequence[ast.stmt]) -> bool:
    """True for a handler that raises again, or ends the process."""
    last = body[-1]
    call = last.value if isinstance(last, ast.Expr) else None
    leaves = isinstance(call, ast.Call) and ast.unparse(call.func) in _LEAVES
    return leaves or isinstance(last, ast.Raise)
