"""A thread that is blocked in a system call -> what it waits for. No I/O."""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections.abc import Callable, Sequence
from functools import cached_property

import msgspec
from msgspec.structs import replace

from ..beacon import torch_names
from ..beacon.record import NativeCall, Record, Site
from ..model.frames import Frame
from ..model.waits import (
    ANY_CHILD,
    READER,
    SEND_OR_RECEIVE,
    SIGNAL,
    InCollective,
    InP2P,
    InStore,
    OnChild,
    OnCondition,
    OnInput,
    OnIO,
    OnLock,
    OnThread,
    Wait,
)
from ..program.syntax import holds
from . import locks, polling
from .called import called_at
from .freeing import ENDED_BY
from .groups import Waiting, pending_waits
from .source import Sources, relative

_IN_PROCESS = ("threading.py", "queue.py", os.path.join("concurrent", "futures", "_base.py"))
_STARTS = ("run", "_bootstrap_inner", "_bootstrap")
"""The functions of `threading` in which a thread starts."""
_CHILD_FILES = (
    "subprocess.py",
    os.path.join("multiprocessing", "popen_fork.py"),
    os.path.join("multiprocessing", "process.py"),
    torch_names.SPAWN_FILE,
)
_OUTPUT = re.compile(r"/stuck-ranks-\d+(?:-\w+)?/[\w-]+/output/(?:job|\d+-\d+)$")
"""A pipe into which a process of a run prints (`launch.output_pipes`)."""
_PROMPT_FILES = ("pdb.py", "cmd.py", "bdb.py")
READS = ("read", "readv", "pread", "recvfrom", "recvmsg")
WRITES = ("write", "writev", "sendto", "sendmsg")
_POLLS = ("poll", "select", "epoll_wait", "accept", "connect", "open")
_CHILD_CALLS = ("wait4", "waitid")
_INSIDE_CALLS = ("futex", "nanosleep")
"""Calls that nothing outside of the process and of the memory that it shares ends."""
_SIGNAL_CALLS = ("pause", "sigsuspend", "sigtimedwait")
NO_CALL: NativeCall = {"call": "", "fd": None, "target": None, "limited": False}


class Blocked(msgspec.Struct, frozen=True, dict=True):
    """A thread that is blocked.

    Attributes:
        frames: innermost first.
        native: its system call, `NO_CALL` where it is in none that is known.
        site: the line of the user's that it is in, and the objects there, where that is its innermost.
        common: what all its waits have in common.
    """

    frames: Sequence[Frame]
    native: NativeCall
    site: Site | None
    record: Record
    common: Waiting
    sources: Sources

    @cached_property
    def source_call(self) -> tuple[str, str, str | None] | None:
        """What the line calls, as `called.called_at` tells.

        Where only the line is known, a thread that sleeps is in the `sleep` that stands in it.
        """
        if self.site is None or (self.op == "nanosleep" and "sleep" in self._methods):
            return None
        return called_at(self.site, self.sources)

    @property
    def method(self) -> str | None:
        """The only method that the line calls, where it is one by which a thread waits for another."""
        method = self._methods[0] if len(self._methods) == 1 else None
        return method if method in ENDED_BY else None

    @cached_property
    def _methods(self) -> list[str]:
        """The names of the methods that are called at the site, or in its line where that is known."""
        calls = self.sources.calls(self.site) if self.site is not None else ()
        return [method.attr for _, method in calls]

    @property
    def op(self) -> str:
        """Name of the system call."""
        return self.native["call"]

    @property
    def target(self) -> str:
        """What the system call reads, writes or locks."""
        return self.native["target"] or ""


def blocked_waits(blocked: Blocked) -> list[Wait]:
    """What a thread waits for that is in no call of torch's which tells it; empty when unknown."""
    call = blocked.source_call
    if call is not None and call[0] == "Store":
        return [InStore(op=call[1], key=call[2], **blocked.common)]
    if not blocked.frames or not blocked.op:
        return []
    waits = (kind(blocked) for kind in _KINDS)
    if (wait := next((wait for wait in waits if wait is not None), None)) is not None:
        return [wait]
    if blocked.op == "futex":
        return _work(blocked)
    return _in_native_code(blocked) if blocked.op == "nanosleep" else []


def _polled_lock(blocked: Blocked) -> Wait | None:
    """A lock that the thread asks for again and again, and sleeps between."""
    site, sources, call = blocked.site, blocked.sources, blocked.source_call
    if site is None or blocked.op != "nanosleep":
        return None
    if polling.asks_again(site, sources):
        return OnLock(op=locks.POLLED[0], **blocked.common)
    if call is not None and call[0] == "sqlite":
        return OnLock(op=locks.POLLED[1], **blocked.common)
    if (file := polling.lock_file(site, sources)) is None:
        return None
    op = locks.TIMED_FILE if polling.gives_up(site, sources) else locks.OWN_FILE
    return OnLock(op=op, path=_path(file, sources), **blocked.common)


def _input(blocked: Blocked) -> Wait | None:
    """An answer at a terminal, or at the standard input."""
    terminal = blocked.target.startswith(("/dev/pts/", "/dev/tty"))
    reads = blocked.op in READS and (blocked.native["fd"] == 0 or terminal)
    prompts = blocked.op in READS + _POLLS and _among(blocked.frames[:8], _PROMPT_FILES)
    if not (prompts or reads):
        return None
    return OnInput(op="read", source=blocked.target or None, **blocked.common)


def _condition(blocked: Blocked) -> Wait | None:
    """The condition that the loop around a line tests while the thread sleeps, or waits for a time."""
    where = blocked.common["where"]
    timed = (
        blocked.op == "nanosleep" or blocked.native["limited"] or blocked.native.get("lasts") is not None
    )
    if not timed or where is None:
        return None
    tested = polling.condition(where.file, where.line, blocked.sources)
    if tested is None:
        return None
    changes = polling.changed_at(where.file, where.line, tested, blocked.sources)
    return OnCondition(op=tested, changed_at=changes, **blocked.common)


def _outside(blocked: Blocked) -> Wait | None:
    """A lock on a file, a child, or the other end of a pipe or a socket."""
    op, target, common = blocked.op, blocked.target, blocked.common
    if op in ("flock", "fcntl"):
        return OnLock(op=op, path=_path(target, blocked.sources), **common)
    if op in _CHILD_CALLS or _among(_library_frames(blocked.frames), _CHILD_FILES):
        return OnChild(op=ANY_CHILD, **common)
    if op in WRITES and _OUTPUT.search(target):
        return OnIO(op=op, target=READER, **common)
    if op in _SIGNAL_CALLS:
        return OnIO(op=op, target=SIGNAL, **common)
    return OnIO(op=op, target=target or None, **common) if op not in _INSIDE_CALLS else None


def _inside(blocked: Blocked) -> Wait | None:
    """Another thread of the process, or a lock that one may hold."""
    call = blocked.source_call
    if blocked.op != "futex":
        return None
    of_python = itertools.takewhile(lambda frame: _among([frame], _IN_PROCESS), blocked.frames)
    called_first = [frame.function for frame in of_python if frame.function not in _STARTS][-1:]
    if called_first:
        return OnThread(op=called_first[0], limited=blocked.native["limited"], **blocked.common)
    limited = blocked.native["limited"]
    if blocked.native.get("shared"):
        return OnLock(op="acquire", shared=True, limited=limited, **blocked.common)
    if call is not None and call[0] == "lock":
        return OnLock(op=call[1], **blocked.common)
    if call is None and blocked.method is not None:
        return OnThread(op=blocked.method, limited=limited, **blocked.common)
    return None


_KINDS: tuple[Callable[[Blocked], Wait | None], ...] = (
    _polled_lock,
    _input,
    _condition,
    _outside,
    _inside,
)
"""The kinds of waits, the special before the general: a loop that polls a lock tests and sleeps, too."""


def _work(blocked: Blocked) -> list[Wait]:
    """What a handle of `torch.distributed` stands for, or a call that torch makes in C++."""
    record, common = blocked.record, blocked.common
    handle, _, peer = blocked.source_call or ("", "", None)
    operation = handle.partition("Work.")[2]
    if operation in ("isend", "irecv"):
        peers = (int(peer),) if peer is not None and peer.isdecimal() else ()
        return [InP2P(op=operation, peers=peers, **common)]
    pending = pending_waits(record, common)
    if pending and (handle.startswith("Work") or _may_wait_for_work(blocked)):
        return _oldest_blocking(pending, operation)
    if handle.startswith("Work"):
        return [InP2P(op=SEND_OR_RECEIVE, **common)]
    return _in_native_code(blocked)


def _in_native_code(blocked: Blocked) -> list[Wait]:
    """A call that torch makes in C++; NCCL sleeps between looks while it connects the ranks."""
    function = unnamed_call(blocked.frames)
    if function == "wait":
        return [InP2P(op=SEND_OR_RECEIVE, **blocked.common)]
    if function is not None and blocked.record["flight"] is None:
        return [InCollective(op=function, **blocked.common)]
    return []


def unnamed_call(frames: Sequence[Frame]) -> str | None:
    """What to call the wait in the library's frames, out to the user's; None where none is known."""
    inside = itertools.takewhile(lambda frame: not frame.user, frames)
    names = (torch_names.unnamed(frame.file, frame.function) for frame in inside)
    return next(filter(None, names), None)


def _may_wait_for_work(blocked: Blocked) -> bool:
    """True where the innermost line is torch's own, or calls a method `wait`.

    Other calls that block without a system call of their own, such as that of a semaphore, have nothing
    to do with a collective that is pending meanwhile.
    """
    innermost = blocked.frames[0]
    if not innermost.user and f"{os.sep}torch{os.sep}" in innermost.file:
        return True
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "wait"
        and holds(node, innermost.line)
        for node in ast.walk(blocked.sources.tree(innermost.file))
    )


def _oldest_blocking(pending: Sequence[InCollective], operation: str) -> list[Wait]:
    """Pending collectives, where a thread waits for one by a handle that does not say which.

    It may be the oldest of any group; those of the handle's own operation are preferred.
    """
    candidates = [wait for wait in pending if wait.op == operation] or pending
    oldest = {wait.group: wait for wait in reversed(candidates)}
    return [replace(wait, blocking=oldest.get(wait.group) is wait) for wait in pending]


def of_program(native: NativeCall) -> list[Wait]:
    """What a program that is no Python waits for, by the system call that blocks it."""
    if native["call"] in _INSIDE_CALLS:
        return []
    return [OnIO(op=native["call"], target=native["target"], traced=False)]


def asleep(native: NativeCall | None) -> str | None:
    """`nanosleep` for a thread that sleeps for a time of its own choosing."""
    call = native["call"] if native is not None else None
    return call if call == "nanosleep" else None


def _library_frames(frames: Sequence[Frame]) -> Sequence[Frame]:
    """The innermost frames, out to the user's own: what the user's line has called."""
    return list(itertools.takewhile(lambda frame: not frame.user, frames[:4]))


def _among(frames: Sequence[Frame], endings: Sequence[str]) -> bool:
    """True when one of the frames lies in one of these library files; the user's own never count."""
    names = tuple(os.sep + ending for ending in endings)
    return any(not frame.user and frame.file.endswith(names) for frame in frames)


def _path(path: str, sources: Sources) -> str | None:
    return relative(path, sources.cwd) if path else None
