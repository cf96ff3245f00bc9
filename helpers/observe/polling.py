"""What wakes up only to look around: loops in a program's source, and libraries that poll. No I/O."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator

from ..beacon.record import Site, Thread
from ..model.frames import Frame
from ..model.waits import ENDLESS
from ..program.syntax import called_name, holds, innermost, own_nodes
from . import source
from .source import Sources

_LOOKS = ("exists", "lexists", "isfile", "is_file")
_HARMLESS = frozenset(
    (
        *(*_LOOKS, "open", "touch", "mkdir", "Path", "join", "str", "sleep", "print", "debug", "info"),
        *("warning", "write", "write_text", "close", "fdopen", "getpid", "encode"),
    )
)
"""Calls that neither end a loop that waits for a lock file, nor remove the file."""

_IDLE = frozenset(("sleep", "print", "debug", "info", "warning", "log", "flush"))
"""Calls of a loop between two tests that change nothing of what it tests."""

_IDLE_FOR_A_TIME = ("wait", "join")
"""The same where they have an argument, a time limit. Without one a thread meets others there."""

_CLOCKS = re.compile(r"\b(?:time|monotonic|perf_counter|now)\(\)|deadline|elapsed|timeout(?!=)")

_POLLING = {
    # MP_STATUS_CHECK_INTERVAL, 5 s: torch/utils/data/_utils/__init__.py, 2.0 to 2.15
    "_try_get_data": ("torch/utils/data/dataloader.py", 5.0),
    "_worker_loop": ("torch/utils/data/_utils/worker.py", 5.0),
    # logging_interval, 10 s: torch/distributed/distributed_c10d.py, 2.0 to 2.15
    "_store_based_barrier": ("torch/distributed/distributed_c10d.py", 10.0),
}
"""A function that looks around again and again -> its file, and seconds between two looks."""

_POLLING_CALLS = ("store", "rendezvous", "lock")
"""Calls of torch and of lock files that poll many times a second, in C++ too: `TCPStore::waitForWorkers`
and `FileStore` every 0.01 s, `FileBaton` and `filelock` every 0.1 s. `init_rpc` is a rendezvous, too."""

_ATTRIBUTES = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?!\w*\()")

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

MOST_CHANGES = 3
"""Lines that change what a condition asks that are told."""

_WAKES = 4.0
"""How often a thread is scheduled, at most, when it looks around once: it may have to wait for the
interpreter lock."""


def wakes(thread: Thread) -> float:
    """Wake-ups a second that are those of the library in which a thread waits."""
    call = thread["call"]
    if call is not None and (call["kind"] in _POLLING_CALLS or call["op"] == "init_rpc"):
        return math.inf
    for file, _, function, user in thread["frames"]:
        if user:
            break
        name, period = _POLLING.get(function, ("", 0.0))
        if name and file.endswith(name):
            return _WAKES / period
    return 0.0


def condition(file: str, line: int, sources: Sources) -> str | None:
    """What the loop around a line tests, which does nothing else but sleep; None for no such loop.

    It is `True` for a loop that tests nothing. A loop that counts, or looks at a clock, ends by itself.
    """
    enclosing = (
        node
        for node in ast.walk(sources.tree(file))
        if isinstance(node, ast.While | ast.For | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= line <= (node.body[-1].end_lineno or line)
    )
    loop = max(enclosing, key=lambda node: node.lineno, default=None)
    if not isinstance(loop, ast.While):
        return None
    tests = [*_tests([loop])]
    text = " or ".join(ast.unparse(test) for test in tests) or ENDLESS
    counters = {name for node in ast.walk(loop) for name in _counters(node)}
    tested = {name for test in tests for name in _names(test)}
    if counters & tested or _CLOCKS.search(text) or not _are_idle(loop.body, tested):
        return None
    return text


def changed_at(file: str, line: int, tests: str, sources: Sources) -> tuple[Frame, ...]:
    """Where functions other than the one around a line change an attribute that a condition asks.

    Those that only begin with a value, as `__init__` does, are left out.
    """
    attributes = {name.rpartition(".")[2] for name in _ATTRIBUTES.findall(tests)}
    functions = (node for node in ast.walk(sources.tree(file)) if isinstance(node, _FUNCTIONS))
    stores = (
        Frame(file, node.lineno, function.name)
        for function in functions
        if function.name != "__init__" and not holds(function, line)
        for node in own_nodes(function)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if node.attr in attributes
    )
    first = {store.function: store for store in reversed([*stores])}
    return tuple(reversed(first.values()))[:MOST_CHANGES]


def _tests(body: Iterable[ast.stmt]) -> Iterator[ast.expr]:
    """What decides in a loop whether it goes on: conditions, and calls whose failure does."""
    for statement in body:
        if isinstance(statement, ast.While | ast.If):
            decides = _leaves([statement]) or isinstance(statement, ast.While)
            if decides and not isinstance(statement.test, ast.Constant):
                yield statement.test
            yield from _tests([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Try) and _leaves([*statement.body, *statement.orelse]):
            for attempt in statement.body:
                value = getattr(attempt, "value", None)
                if isinstance(value, ast.Call):
                    yield value
            yield from _tests(part for handler in statement.handlers for part in handler.body)


def _leaves(body: Iterable[ast.stmt]) -> bool:
    """True where a loop may be left."""
    nodes = (node for statement in body for node in ast.walk(statement))
    return any(isinstance(node, ast.Break | ast.Return | ast.Raise) for node in nodes)


def _is_idle(statement: ast.stmt, tested: Iterable[str]) -> bool:
    """True for a statement that tests, sleeps, says something, or leaves the loop."""
    match statement:
        case ast.Pass() | ast.Continue() | ast.Break() | ast.Return() | ast.Raise():
            return True
        case ast.If():
            return _are_idle([*statement.body, *statement.orelse], tested)
        case ast.Try():
            return _try_is_idle(statement, tested)
        case ast.Expr(value=ast.Call() as call):
            name, limited = called_name(call), bool(call.args or call.keywords)
            return name in _IDLE or (limited and name in _IDLE_FOR_A_TIME)
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)):
            return name in tested or not any(isinstance(n, ast.Call) for n in ast.walk(statement))
        case _:
            return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _are_idle(body: Iterable[ast.stmt], tested: Iterable[str]) -> bool:
    return all(_is_idle(statement, tested) for statement in body)


def _try_is_idle(statement: ast.Try, tested: Iterable[str]) -> bool:
    """The same of a `try`, in which a call may decide whether the loop is left."""
    decides = _leaves([*statement.body, *statement.orelse])
    attempt = [
        part
        for part in statement.body
        if not (decides and isinstance(getattr(part, "value", None), ast.Call))
    ]
    handlers = [part for handler in statement.handlers for part in handler.body]
    return _are_idle([*attempt, *handlers, *statement.orelse, *statement.finalbody], tested)


def _counters(node: ast.AST) -> set[str]:
    """The names to which a statement gives a value that is made of the one they have."""
    if isinstance(node, ast.AugAssign):
        return _names(node.target)
    if isinstance(node, ast.Assign):
        bound = {name for target in node.targets for name in _names(target)}
        return bound & _names(node.value)
    return set()


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def lock_file(site: Site, sources: Sources) -> str | None:
    """Path of the lock file that the loop around a source position waits for; None for no such loop.

    The path is empty where it cannot be told.

    Two loops count: `while` the file exists, and one that tries to create it and catches that it
    exists (`O_EXCL`, mode `x`, `touch(exist_ok=False)`, `mkdir`).
    """
    loop = innermost(sources.tree(site["file"]), site["position"][0], ast.While)
    if loop is None:
        return None
    for call in _attempts(loop):
        if (path := _created(call)) is not None:
            return _path_value(path, site, sources)
    tested = _tested_path(loop.test)
    return _path_value(tested, site, sources) if tested is not None else None


def _path_value(path: ast.expr, site: Site, sources: Sources) -> str:
    """A path by the names that are seen, else by those that the module gives a value once."""
    tree = sources.tree(site["file"])
    assignments = [
        (target.id, node.value)
        for node in (tree.body if isinstance(tree, ast.Module) else ())
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    constants = {
        name: text for name, value in assignments if (text := source.text(value, {})) is not None
    }
    return source.text(path, {**constants, **site["strings"]}) or ""


def asks_again(site: Site, sources: Sources) -> bool:
    """True where the loop around a source position asks for a lock of the kernel without waiting for it.

    That is a call of `flock` or `lockf` with `LOCK_NB`, whose refusal the loop catches.
    """
    loop = innermost(sources.tree(site["file"]), site["position"][0], ast.While)
    return loop is not None and any(map(_locks_at_once, _attempts(loop)))


def _attempts(loop: ast.While) -> Iterator[ast.Call]:
    """The calls in a loop whose refusal it catches."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Try) and any(map(_catches, node.handlers)):
            calls = (call for part in node.body for call in ast.walk(part))
            yield from (call for call in calls if isinstance(call, ast.Call))


def gives_up(site: Site, sources: Sources) -> bool:
    """True unless the loop around a source position does nothing but look, sleep and try again.

    A loop that compares or decides may have a deadline, and one that calls may remove an old lock.
    """
    loop = innermost(sources.tree(site["file"]), site["position"][0], ast.While)
    return loop is None or any(
        isinstance(node, ast.If | ast.IfExp | ast.Compare | ast.Raise | ast.For | ast.With)
        or (isinstance(node, ast.Call) and called_name(node).rpartition(".")[2] not in _HARMLESS)
        for node in ast.walk(loop)
    )


def _catches(handler: ast.ExceptHandler) -> bool:
    return handler.type is not None and any(
        name in ast.unparse(handler.type) for name in ("FileExistsError", "OSError", "BlockingIOError")
    )


def _tested_path(test: ast.expr) -> ast.expr | None:
    """The path of `exists(path)` or `path.exists()`, as the whole condition."""
    if not isinstance(test, ast.Call) or called_name(test) not in _LOOKS:
        return None
    return test.args[0] if test.args else _owner(test)


def _created(call: ast.Call) -> ast.expr | None:
    """The path that a call creates and that must not exist before."""
    arguments = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    arguments |= {str(number): ast.unparse(argument) for number, argument in enumerate(call.args)}
    owner = _owner(call)
    of_path = owner is not None and ast.unparse(call.func) not in ("os.open", "os.mkdir", "io.open")
    match called_name(call):
        case "open":
            mode = arguments.get("mode") or arguments.get("0" if of_path else "1") or ""
            creates = "O_EXCL" in mode + arguments.get("flags", "") or mode[1:2] == "x"
        case "touch":
            creates = of_path and arguments.get("exist_ok") == "False"
        case "mkdir":
            creates = arguments.get("exist_ok") != "True"
        case _:
            creates = False
    path = owner if of_path else next(iter(call.args), None)
    return path if creates else None


def _locks_at_once(call: ast.Call) -> bool:
    return called_name(call) in ("flock", "lockf") and "LOCK_NB" in ast.unparse(call)


def _owner(call: ast.Call) -> ast.expr | None:
    return call.func.value if isinstance(call.func, ast.Attribute) else None
