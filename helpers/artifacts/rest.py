"""A thread that rests, in a dump that does not tell the system call -> the likely one, by its line."""

from __future__ import annotations

import ast
import os

from ..beacon.record import NativeCall, Thread
from ..observe.called import called_at
from ..observe.source import Sources
from ..program.syntax import holds

UNKNOWN = ""
"""Some system call."""

BY_FILE = {
    "subprocess.py": "wait4",
    os.path.join("torch", "utils", "file_baton.py"): "nanosleep",
    "socket.py": "recvfrom",
    "selectors.py": "poll",
    os.path.join("multiprocessing", "connection.py"): "read",
    "threading.py": "futex",
    "queue.py": "futex",
}
"""Files of Python's library, and of torch, whose functions wait in one way."""

BY_OBJECT = {"sqlite": "nanosleep", "Store": "recvfrom"}
"""What a line calls something of, and how that waits."""

BY_CALL = {
    "sleep": "nanosleep",
    "pause": "pause",
    "waitpid": "wait4",
    "flock": "flock",
    "lockf": "fcntl",
    "input": "read",
    "read": "read",
    "readline": "read",
    "recv": "recvfrom",
    "accept": "accept",
    "select": "select",
    "poll": "poll",
    "write": "write",
    "wait": "futex",
    "synchronize": "futex",
    "acquire": "futex",
}
"""What a line calls, and how that waits."""


def native_call(thread: Thread, sources: Sources) -> NativeCall:
    """The system call in which a thread rests."""
    return {"call": _system_call(thread, sources), "fd": None, "target": None, "limited": False}


def _system_call(thread: Thread, sources: Sources) -> str:
    if not thread["frames"]:
        return UNKNOWN
    file, line, _, user = thread["frames"][0]
    if not user:
        by_file = (call for ending, call in BY_FILE.items() if file.endswith(os.sep + ending))
        return next(by_file, "futex" if f"{os.sep}torch{os.sep}" in file else UNKNOWN)
    site = thread["site"]
    callee = called_at(site, sources) if site is not None else None
    if callee is not None and callee[0] in BY_OBJECT:
        return BY_OBJECT[callee[0]]
    names = {
        _name(node)
        for node in ast.walk(sources.tree(file))
        if isinstance(node, ast.Call) and holds(node, line)
    }
    calls = {BY_CALL[name] for name in names & BY_CALL.keys()}
    return calls.pop() if len(calls) == 1 else UNKNOWN


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
