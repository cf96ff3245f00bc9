"""Which thread of a process another one of it waits for. No I/O."""

from __future__ import annotations

import ast

from ..beacon.record import Locks, Record, Thread
from .source import Sources


def awaited(thread: Thread, record: Record, sources: Sources) -> tuple[list[Thread], bool]:
    """The threads that a thread waits for, one through the other, as far as that is known for sure.

    Returns:
        The nearest first, and True when the last of them waits for the thread itself or for one before
        it: then none of them ever goes on.
    """
    chain = [thread]
    while (following := _next(chain[-1], record, sources)) is not None:
        if following in chain:
            return chain[1:], True
        chain.append(following)
    return chain[1:], False


def _next(thread: Thread, record: Record, sources: Sources) -> Thread | None:
    native = thread["native"]
    if native is None or native["call"] != "futex" or native["limited"]:
        return None
    ident = thread.get("joins")
    if ident is None:
        lock = _wanted_lock(thread, sources)
        if lock is None:
            return None
        tables = (locks["owners"] for owner in record["threads"] for locks in owner.get("locks", ()))
        ident = next((owners[lock] for owners in tables if lock in owners), None)
        if ident is None:
            return next((owner for owner in record["threads"] if _holds(owner, lock, sources)), None)
    return next((owner for owner in record["threads"] if owner.get("ident") == ident), None)


def _wanted_lock(thread: Thread, sources: Sources) -> int | None:
    """The number of the lock that a thread waits for."""
    site = thread["site"]
    if thread.get("wants") is not None or site is None:
        return thread.get("wants")
    in_file = (locks for locks in thread.get("locks", ()) if locks["file"] == site["file"])
    locks = next(in_file, None)
    if locks is None or len(site["position"]) == 1:
        return None
    for node in sources.at(site):
        if isinstance(node, ast.With):
            contexts = [item.context_expr for item in node.items]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            contexts = [node.func.value]
        else:
            contexts = [node]
        for expression in contexts:
            if (lock := locks["names"].get(ast.unparse(expression))) is not None:
                return lock
    return None


def _holds(thread: Thread, lock: int, sources: Sources) -> bool:
    """True for a thread that is inside a block of the source which a lock is held for.

    A condition gives its lock back while somebody waits for it.
    """
    if any(name == "wait" and file.endswith("threading.py") for file, _, name, _ in thread["frames"]):
        return False
    waits = _wanted_lock(thread, sources) == lock
    return any(
        _inside(locks, lock, sources, begins=waits and number == 0)
        for number, locks in enumerate(thread.get("locks", ()))
    )


def _inside(locks: Locks, lock: int, sources: Sources, *, begins: bool) -> bool:
    """True for a line in the body of a `with`, or of a `try` that ends in `release`, for this lock.

    Args:
        begins: whether the line may be the one that asks for the lock.
    """
    names = {name for name, number in locks["names"].items() if number == lock}
    for node in ast.walk(sources.tree(locks["file"])):
        if isinstance(node, ast.With):
            contexts = {ast.unparse(item.context_expr) for item in node.items}
        elif isinstance(node, ast.Try):
            calls = (call for part in node.finalbody for call in ast.walk(part))
            contexts = {
                ast.unparse(call.func.value)
                for call in calls
                if isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr == "release"
            }
        else:
            continue
        body = node.body
        first = body[0].lineno + (begins and body[0].lineno == node.lineno)
        if contexts & names and first <= locks["line"] <= (body[-1].end_lineno or body[-1].lineno):
            return True
    return False
