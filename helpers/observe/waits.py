"""One record -> what each thread of that process waits for. No I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from ..beacon import torch_names
from ..beacon.record import Call, Record, Thread
from ..model.frames import Frame, innermost_user
from ..model.waits import (
    AtRendezvous,
    InCollective,
    InP2P,
    InRPC,
    InStore,
    JoinsRPC,
    OnChild,
    OnCondition,
    OnDevice,
    OnLock,
    Wait,
)
from . import nccl, timeouts
from .device_reads import METHODS, read_at, waits_in
from .groups import Waiting, carries_out, group_count, logged, members, on_device, pending_waits, sizes
from .source import Sources, frame_of, relative
from .system_call import NO_CALL, Blocked, blocked_waits, unnamed_call

DRIVER_CALLS = ("poll", "ioctl")
"""Where a process sleeps that has told CUDA to block (cudaDeviceScheduleBlockingSync)."""

COMPUTES = "backward"
"""What torch does in C++ besides communicating: a thread that spins there may do that."""

CARRIERS = frozenset(
    (
        *("c10d_logger", "distributed_c10d", "contextlib", "functools", "_contextlib", "module", "call"),
        *("strategies", "plugins", "launchers", "distributed", "profilers", "rank_zero", "operations"),
        *("_dynamo", "autograd"),
    )
)
"""Parts of names of modules whose functions carry out what others have asked for: those of Lightning,
accelerate and torch."""


def thread_waits(thread: Thread, record: Record, sources: Sources) -> list[Wait]:
    """What one thread waits for, oldest first; empty when it is not known to wait."""
    frames = [frame_of(entry, sources.cwd) for entry in thread["frames"]]
    waits = [_with_values(wait, thread) for wait in _waits(thread, frames, record, sources)]
    if not waits or not timeouts.goes_on(thread, frames, sources):
        return waits
    return [replace(wait, limited=wait.blocking) for wait in waits]


def _with_values(wait: Wait, thread: Thread) -> Wait:
    """A condition with the values of the names in it."""
    if not isinstance(wait, OnCondition):
        return wait
    place = next(place for place, entry in enumerate(thread["frames"]) if entry[3])
    values = thread.get("values", {}).get(place, {})
    names = dict.fromkeys(re.findall(r"[A-Za-z_][\w.]*", wait.op))
    return replace(wait, values=tuple(f"{name} = {values[name]}" for name in names if name in values))


def _telling(thread: Thread) -> tuple[str, ...]:
    """The functions of libraries that say what they communicate for, outermost first."""
    return tuple(
        name
        for module, name in thread.get("within", ())
        if CARRIERS.isdisjoint(module.split(".")) and "<" not in name.rpartition(".")[2]
    )


def _waits(thread: Thread, frames: Sequence[Frame], record: Record, sources: Sources) -> list[Wait]:
    common = Waiting(
        thread=thread["name"], where=innermost_user(frames), within=_telling(thread), traced=bool(frames)
    )
    if thread["call"] is not None:
        return _in_call(thread["call"], record, common, sources.cwd)
    if device := _on_device(thread, frames, record, common, sources):
        return device
    blocked = Blocked(frames, thread["native"] or NO_CALL, thread["site"], record, common, sources)
    return blocked_waits(blocked)


def _in_call(call: Call, record: Record, common: Waiting, cwd: str) -> list[Wait]:
    """What a thread waits for in a call of torch, of a lock file or of a child."""
    op = call["op"]
    issues = call["kind"] in ("collective", "p2p") and op not in torch_names.UNRECORDED
    if issues and nccl.serves(record, call["group"]) and nccl.is_open(record, call["group"]):
        return [OnDevice(op=op, **common)]
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
                    sizes=sizes(call["sizes"]),
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
            path = relative(call["key"], cwd) if call["key"] else None
            return [OnLock(op=op, path=path, **common)]
        case "process":
            return [OnChild(op=op, **common)]


def _on_device(
    thread: Thread, frames: Sequence[Frame], record: Record, common: Waiting, sources: Sources
) -> list[Wait]:
    """The device, where a thread spins, or a driver keeps it, in a line that asks for a value of it.

    What NCCL has to do first is waited for, where its recorder tells that.
    """
    native = thread["native"]
    driven = thread.get("spins") if native is None else native["call"] in DRIVER_CALLS
    if not driven:
        return []
    method = read_at(frames, sources)
    if method is None and (function := unnamed_call(frames)) != COMPUTES:
        method = function or waits_in(thread)
    can_wait = on_device(record) or (record["source"] == "py-spy" and method in METHODS)
    if method is None or not can_wait:
        return []
    pending = nccl.first_pending(record, common)
    if not pending:
        return [OnDevice(op=method, **common)]
    return [*pending, OnDevice(op=pending[0].op, blocking=False, **common)]


def _collective(call: Call, record: Record, common: Waiting) -> list[Wait]:
    """The pending entries of the call's group; the call blocks on the newest of its own operation.

    Where none has the name of the call, it blocks on the newest of all: an operation on objects consists
    of others. Entries newer than its own were issued by other threads.
    """
    pending = [wait for wait in pending_waits(record, common) if wait.group == call["group"]]
    if pending and call["op"] not in torch_names.UNRECORDED:
        blocking = next((wait for wait in pending[::-1] if wait.op == call["op"]), pending[-1])
        return [
            replace(wait, root=call["root"]) if wait is blocking else replace(wait, blocking=False)
            for wait in pending
        ]
    return [
        InCollective(
            op=call["op"],
            group=call["group"],
            members=members(call),
            seq=_logged_number(call, record),
            sizes=sizes(call["sizes"]),
            root=call["root"],
            group_number=group_count(record) if call["counted"] else None,
            barrier_key=call["key"],
            on_device=carries_out(record, call["group"]) and call["op"] not in torch_names.UNRECORDED,
            **common,
        )
    ]


def _logged_number(call: Call, record: Record) -> int | None:
    """The number of a call that is in progress, where it is the newest of its group in the log."""
    entries = [entry for entry in logged(record) if entry.group == call["group"]]
    return entries[-1].seq if entries and entries[-1].op == call["op"] else None
