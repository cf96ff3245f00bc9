"""One record -> what each thread of that process waits for. No I/O."""

from __future__ import annotations

import ast
import functools
import itertools
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NotRequired, TypedDict

from ..beacon import torch_names
from ..beacon.record import (
    Call,
    FlightEntry,
    FrameEntry,
    Members,
    NativeCall,
    Record,
    Site,
    Thread,
    ranks_of,
)
from ..model.facts import Collective, Group
from ..model.frames import Frame, innermost_user
from ..model.waits import (
    ANY_CHILD,
    READER,
    SEND_OR_RECEIVE,
    AtRendezvous,
    InCollective,
    InP2P,
    InRPC,
    InStore,
    JoinsRPC,
    OnChild,
    OnCondition,
    OnInput,
    OnIO,
    OnLock,
    OnThread,
    Sizes,
    Wait,
)
from . import cells, locks, polling, timeouts
from .called import called_at
from .source import Sources

_IN_PROCESS = ("threading.py", "queue.py", os.path.join("concurrent", "futures", "_base.py"))
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


CARRIERS = frozenset(
    (
        *("c10d_logger", "distributed_c10d", "contextlib", "functools", "_contextlib", "module", "call"),
        *("strategies", "plugins", "launchers", "distributed", "profilers", "rank_zero", "operations"),
        *("_dynamo", "autograd"),
    )
)
"""Parts of names of modules whose functions carry out what others have asked for: those of Lightning,
accelerate and torch."""


class Waiting(TypedDict):
    """What all waits of one thread have in common."""

    thread: str
    where: Frame | None
    within: NotRequired[tuple[str, ...]]
    traced: NotRequired[bool]


def frame(entry: FrameEntry, cwd: str) -> Frame:
    """A `Frame` from that of a record, relative to the job's folder."""
    file, line, function, user = entry
    return Frame(relative(file, cwd), line, function, user)


@functools.lru_cache(maxsize=4096)
def relative(file: str, cwd: str) -> str:
    """`file` relative to `cwd` where it lies inside it, else as it is; `cwd` is empty when unknown.

    Code of a notebook's cell is in no file: it is named as a cell.
    """
    file = cells.shown(file)
    if file.startswith("<") or not cwd:
        return file
    absolute = os.path.normpath(os.path.join(cwd, file))
    inside = absolute.startswith(cwd.rstrip(os.sep) + os.sep)
    return os.path.relpath(absolute, cwd) if inside else absolute


def collectives(record: Record) -> tuple[Collective, ...]:
    """The tail of the record's Flight Recorder, oldest first."""
    labels = labels_of(record)
    return tuple(
        Collective(
            group=labels.get(entry["group"], ("group " + entry["group"], ()))[0],
            seq=entry["seq"],
            op=entry["op"],
            sizes=_sizes(entry["sizes"]),
            dtype=entry.get("dtype", ""),
            outputs=_sizes(entry.get("outputs", [])),
            done=entry["done"],
        )
        for entry in _flight(record)
    )


def thread_waits(thread: Thread, record: Record, sources: Sources) -> list[Wait]:
    """What one thread waits for, oldest first; empty when it is not known to wait."""
    frames = [frame(entry, sources.cwd) for entry in thread["frames"]]
    found = [_with_values(wait, thread) for wait in _blocking(thread, frames, record, sources)]
    if not found or not timeouts.goes_on(thread, frames, sources):
        return found
    return [replace(wait, limited=wait.blocking) for wait in found]


def _with_values(wait: Wait, thread: Thread) -> Wait:
    """A condition with the values of the names in it."""
    if not isinstance(wait, OnCondition):
        return wait
    place = next(place for place, entry in enumerate(thread["frames"]) if entry[3])
    known = thread.get("values", {}).get(place, {})
    names = dict.fromkeys(re.findall(r"[A-Za-z_][\w.]*", wait.op))
    return replace(wait, values=tuple(f"{name} = {known[name]}" for name in names if name in known))


def _telling(thread: Thread) -> tuple[str, ...]:
    """The functions of libraries that say what they communicate for, outermost first."""
    return tuple(
        name
        for module, name in thread.get("within", ())
        if CARRIERS.isdisjoint(module.split(".")) and "<" not in name.rpartition(".")[2]
    )


def _blocking(thread: Thread, frames: Sequence[Frame], record: Record, sources: Sources) -> list[Wait]:
    call = thread["call"]
    common = Waiting(
        thread=thread["name"],
        where=innermost_user(frames),
        within=_telling(thread),
        traced=bool(frames),
    )
    if call is None:
        return _other(frames, thread["native"], thread["site"], record, common, sources)
    op = call["op"]
    match call["kind"]:
        case "collective":
            return _collective(call, record, common)
        case "p2p":
            return [
                InP2P(
                    op=op,
                    group=call["group"],
                    members=members(call),
                    peers=tuple(call["peers"]),
                    sizes=_sizes(call["sizes"]),
                    tag=call.get("tag"),
                    **common,
                )
            ]
        case "store":
            return [InStore(op=op, key=call["key"], **common)]
        case "rendezvous":
            return [AtRendezvous(op=op, address=call["key"], **common)]
        case "rpc" if op == "init_rpc":
            return [JoinsRPC(op=op, address=call["key"], **common)]
        case "rpc":
            return [InRPC(op=op, peers=tuple(call["peers"]), **common)]
        case "lock":
            return [OnLock(op=op, path=_path(call["key"], sources.cwd), **common)]
        case "process":
            return [OnChild(op=op, **common)]


def _collective(call: Call, record: Record, common: Waiting) -> list[Wait]:
    """The pending entries of the call's group; the call blocks on the newest of its own operation.

    Where none has the name of the call, it blocks on the newest of all: an operation on objects consists
    of others. Entries newer than its own were issued by other threads.
    """
    pending = [wait for wait in pending_waits(record, common) if wait.group == call["group"]]
    if pending and call["op"] not in torch_names.UNRECORDED:
        own = next((wait for wait in pending[::-1] if wait.op == call["op"]), pending[-1])
        return [
            replace(wait, root=call["root"]) if wait is own else replace(wait, blocking=False)
            for wait in pending
        ]
    return [
        InCollective(
            op=call["op"],
            group=call["group"],
            members=members(call),
            sizes=_sizes(call["sizes"]),
            root=call["root"],
            group_number=made(record) if call["counted"] else None,
            barrier_key=call["key"],
            **common,
        )
    ]


def made(record: Record) -> int | None:
    """How many groups the process has made; None when unknown."""
    return record["dist"]["made"] if record["dist"] is not None else None


def groups(record: Record) -> tuple[Group, ...]:
    """The process groups of a process, with one that a `new_group` call of it is creating.

    torch numbers the groups that a process makes, and names them by that number.
    """
    dist = record["dist"]
    found = [
        Group(one["id"], one["name"], members(one), one.get("guessed", False))
        for one in (dist["groups"] if dist else ())
    ]
    for call in (thread["call"] for thread in record["threads"]):
        if call is not None and call["counted"] and members(call) and (number := made(record)):
            name = str(number - 1)
            if name not in [group.id for group in found]:
                found.append(Group(name, name, members(call)))
    return tuple(found)


def pending_waits(record: Record, common: Waiting) -> list[InCollective]:
    """Every collective that the Flight Recorder has as enqueued and not completed, oldest first."""
    labels = labels_of(record)
    found = []
    for entry in _flight(record):
        if entry["done"]:
            continue
        label, ranks = labels.get(entry["group"], ("group " + entry["group"], ()))
        found.append(
            InCollective(
                op=entry["op"],
                group=label,
                members=ranks,
                seq=entry["seq"],
                sizes=_sizes(entry["sizes"]),
                dtype=entry.get("dtype", ""),
                **common,
            )
        )
    return found


def _other(
    frames: Sequence[Frame],
    native: NativeCall | None,
    site: Site | None,
    record: Record,
    common: Waiting,
    sources: Sources,
) -> list[Wait]:
    called = called_at(site, sources) if site else None
    if called is not None and called[0] == "Store":
        return [InStore(op=called[1], key=called[2], **common)]
    if not frames or native is None:
        return []
    system_call = native["call"]
    target = native["target"] or ""
    if site and system_call == "nanosleep":
        polls = locks.POLLED[1] if called and called[0] == "sqlite" else None
        polls = locks.POLLED[0] if polling.asks_again(site, sources) else polls
        if polls is not None:
            return [OnLock(op=polls, **common)]
    polled = polling.lock_file(site, sources) if site and system_call == "nanosleep" else None
    if site and polled is not None:
        op = locks.TIMED_FILE if polling.gives_up(site, sources) else locks.OWN_FILE
        return [OnLock(op=op, path=_path(polled or None, sources.cwd), **common)]
    prompts = system_call in READS + _POLLS and _among(frames[:8], _PROMPT_FILES)
    if prompts or _is_prompt(native):
        return [OnInput(op="read", source=target or None, **common)]
    if (tested := _condition(native, common["where"], sources)) is not None:
        return [OnCondition(op=tested, **common)]
    if system_call in ("flock", "fcntl"):
        return [OnLock(op=system_call, path=_path(target, sources.cwd), **common)]
    if system_call in _CHILD_CALLS or _among(_called(frames), _CHILD_FILES):
        return [OnChild(op=ANY_CHILD, **common)]
    if system_call in WRITES and _OUTPUT.search(target):
        return [OnIO(op=system_call, target=READER, **common)]
    if system_call in READS + WRITES + _POLLS:
        return [OnIO(op=system_call, target=target or None, **common)]
    if system_call == "futex":
        if _among(frames[:1], _IN_PROCESS):
            of_python = itertools.takewhile(lambda one: _among([one], _IN_PROCESS), frames)
            called_first = [one.function for one in of_python][-1]
            return [OnThread(op=called_first, limited=native["limited"], **common)]
        if called is not None and called[0] == "lock":
            return [OnLock(op=called[1], **common)]
        handle, peer = (called[0], called[2]) if called is not None else ("", None)
        operation = handle.partition("Work.")[2]
        if operation in ("isend", "irecv"):
            peers = (int(peer),) if peer is not None and peer.isdecimal() else ()
            return [InP2P(op=operation, peers=peers, **common)]
        pending = pending_waits(record, common)
        if pending and (handle.startswith("Work") or _may_wait_for_work(frames[0], sources)):
            return _either(pending, operation)
        if handle.startswith("Work"):
            return [InP2P(op=SEND_OR_RECEIVE, **common)]
        inside = list(itertools.takewhile(lambda one: not one.user, frames))
        named = next(filter(None, (torch_names.unnamed(one.file, one.function) for one in inside)), None)
        if named == "wait":
            return [InP2P(op=SEND_OR_RECEIVE, **common)]
        if named is not None and record["flight"] is None:
            return [InCollective(op=named, **common)]
    return []


def _condition(native: NativeCall, where: Frame | None, sources: Sources) -> str | None:
    """The condition that the loop around a line tests while the thread sleeps, or waits for a time."""
    timed = native["call"] == "nanosleep" or native["limited"] or native.get("lasts") is not None
    if not timed or where is None:
        return None
    return polling.condition(where.file, where.line, sources)


def of_program(native: NativeCall) -> list[Wait]:
    """What a program that is no Python waits for, by the system call that blocks it."""
    if native["call"] not in READS + WRITES + _POLLS:
        return []
    return [OnIO(op=native["call"], target=native["target"], traced=False)]


def _may_wait_for_work(innermost: Frame, sources: Sources) -> bool:
    """True where the innermost line is torch's own, or calls a method `wait`.

    Other calls that block without a system call of their own, such as that of a semaphore, have nothing
    to do with a collective that is pending meanwhile.
    """
    if not innermost.user and f"{os.sep}torch{os.sep}" in innermost.file:
        return True
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "wait"
        and node.lineno <= innermost.line <= (node.end_lineno or node.lineno)
        for node in ast.walk(sources.tree(innermost.file))
    )


def _either(pending: Sequence[InCollective], operation: str) -> list[Wait]:
    """Pending collectives, where a thread waits for one by a handle that does not say which.

    It may be the oldest of any group; those of the handle's own operation are preferred.
    """
    alike = [wait for wait in pending if wait.op == operation] or pending
    oldest = {wait.group: wait for wait in reversed(alike)}
    return [replace(wait, blocking=oldest.get(wait.group) is wait) for wait in pending]


def asleep(native: NativeCall | None) -> str | None:
    """`nanosleep` for a thread that sleeps for a time of its own choosing."""
    call = native["call"] if native is not None else None
    return call if call in ("nanosleep", "pause") else None


def _is_prompt(native: NativeCall) -> bool:
    terminal = (native["target"] or "").startswith(("/dev/pts/", "/dev/tty"))
    return native["call"] in READS and (native["fd"] == 0 or terminal)


def _called(frames: Sequence[Frame]) -> Sequence[Frame]:
    """The innermost frames, out to the user's own: what the user's line has called."""
    return list(itertools.takewhile(lambda frame: not frame.user, frames[:4]))


def _among(frames: Sequence[Frame], endings: Sequence[str]) -> bool:
    """True when one of the frames lies in one of these library files; the user's own never count."""
    names = tuple(os.sep + ending for ending in endings)
    return any(not frame.user and frame.file.endswith(names) for frame in frames)


def _path(path: str | None, cwd: str) -> str | None:
    return relative(path, cwd) if path else None


def labels_of(record: Record) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Id of each group -> what it is called here, and its members."""
    groups = record["dist"]["groups"] if record["dist"] is not None else ()
    return {group["id"]: (group["name"], members(group)) for group in groups}


def members(told: Members) -> tuple[int, ...]:
    """The members of a group: one object wherever they are equal, since they may be many."""
    return _same(tuple(ranks_of(told)))


@functools.lru_cache(maxsize=64)
def _same(members: tuple[int, ...]) -> tuple[int, ...]:
    return members


def _sizes(shapes: Sequence[Sequence[int]]) -> Sizes:
    return tuple(map(tuple, shapes))


def _flight(record: Record) -> list[FlightEntry]:
    """The entries of the record's Flight Recorder, oldest first."""
    entries = record["flight"]["entries"] if record["flight"] is not None else ()
    return sorted(entries, key=lambda entry: entry["created"])
