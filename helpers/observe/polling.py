"""The lock file that a loop in a program's source waits for."""

from __future__ import annotations

import ast

from ..beacon.record import Site
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


def lock_file(site: Site, sources: Sources) -> str | None:
    """Path of the lock file that the loop around a source position waits for; None for no such loop.

    The path is empty where it cannot be told.

    Two loops count: `while` the file exists, and one that tries to create it and catches that it
    exists (`O_EXCL`, mode `x`, `touch(exist_ok=False)`, `mkdir`).
    """
    loop = _loop_around(sources.tree(site["file"]), site["position"][0])
    if loop is None:
        return None
    for attempt in (node for node in ast.walk(loop) if isinstance(node, ast.Try)):
        if not any(_catches(handler) for handler in attempt.handlers):
            continue
        for call in (node for part in attempt.body for node in ast.walk(part)):
            path = _made(call) if isinstance(call, ast.Call) else None
            if path is not None:
                return _told(path, site, sources)
    looked_at = _looked_at(loop.test)
    return _told(looked_at, site, sources) if looked_at is not None else None


def _told(path: ast.expr, site: Site, sources: Sources) -> str:
    """A path by the names that are seen, else by those that the module gives a value once."""
    tree = sources.tree(site["file"])
    given = [
        (target.id, node.value)
        for node in (tree.body if isinstance(tree, ast.Module) else ())
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    constants = {name: text for name, value in given if (text := source.text(value, {})) is not None}
    return source.text(path, {**constants, **site["strings"]}) or ""


def asks_again(site: Site, sources: Sources) -> bool:
    """True where the loop around a source position asks for a lock of the kernel without waiting for it.

    That is a call of `flock` or `lockf` with `LOCK_NB`, whose refusal the loop catches.
    """
    loop = _loop_around(sources.tree(site["file"]), site["position"][0])
    attempts = [node for node in ast.walk(loop) if isinstance(node, ast.Try)] if loop else []
    return any(
        isinstance(call, ast.Call) and _locks_at_once(call)
        for attempt in attempts
        if any(_catches(handler) for handler in attempt.handlers)
        for part in attempt.body
        for call in ast.walk(part)
    )


def gives_up(site: Site, sources: Sources) -> bool:
    """True unless the loop around a source position does nothing but look, sleep and try again.

    A loop that compares or decides may have a deadline, and one that calls may remove an old lock.
    """
    loop = _loop_around(sources.tree(site["file"]), site["position"][0])
    return loop is None or any(
        isinstance(node, ast.If | ast.IfExp | ast.Compare | ast.Raise | ast.For | ast.With)
        or (isinstance(node, ast.Call) and _name(node).rpartition(".")[2] not in _HARMLESS)
        for node in ast.walk(loop)
    )


def _catches(handler: ast.ExceptHandler) -> bool:
    return handler.type is not None and any(
        name in ast.unparse(handler.type) for name in ("FileExistsError", "OSError", "BlockingIOError")
    )


def _loop_around(tree: ast.AST, line: int) -> ast.While | None:
    loops = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.While) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(loops, key=lambda node: node.lineno, default=None)


def _looked_at(test: ast.expr) -> ast.expr | None:
    """The path of `exists(path)` or `path.exists()`, as the whole condition."""
    if not isinstance(test, ast.Call) or _name(test) not in _LOOKS:
        return None
    return test.args[0] if test.args else _owner(test)


def _made(call: ast.Call) -> ast.expr | None:
    """The path that a call creates and that must not exist before."""
    name, path = _name(call), call.args[0] if call.args else None
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    given |= {str(number): ast.unparse(argument) for number, argument in enumerate(call.args)}
    method = _owner(call) is not None and ast.unparse(call.func) not in (
        "os.open",
        "os.mkdir",
        "io.open",
    )
    if name == "open":
        mode = given.get("mode") or given.get("0" if method else "1") or ""
        exclusive = "O_EXCL" in mode or "O_EXCL" in given.get("flags", "") or mode[1:2] == "x"
        return (_owner(call) if method else path) if exclusive else None
    if name == "touch" and given.get("exist_ok") == "False":
        return _owner(call)
    if name == "mkdir" and given.get("exist_ok") != "True":
        return _owner(call) if method else path
    return None


def _locks_at_once(call: ast.Call) -> bool:
    return _name(call) in ("flock", "lockf") and "LOCK_NB" in ast.unparse(call)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def _owner(call: ast.Call) -> ast.expr | None:
    return call.func.value if isinstance(call.func, ast.Attribute) else None
