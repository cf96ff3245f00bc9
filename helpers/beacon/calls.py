"""What a blocked thread is calling: the torch operation on its stack, with its arguments."""

from __future__ import annotations

import _thread
import sys
from types import FrameType
from typing import Any, Dict, List, Optional

from . import stacks, torch_names

CO_OPTIMIZED = 1

LOCKS = (type(_thread.allocate_lock()), _thread.RLock)

MEMBERS = 64
"""Members that a container has at most for it to be looked at."""

FILE_CALLS = frozenset(("exists", "lexists", "isfile", "is_file", "open", "touch", "mkdir"))
"""Names by which a program looks for a lock file, or makes one."""

Call = Dict[str, Any]

_NO_GROUP: Call = {"group": None, "ranks": [], "peers": [], "sizes": [], "key": None}


def torch_call(frame: Optional[FrameType]) -> Optional[Call]:
    """{kind, op, group, ranks, peers, sizes, key, missing} of the torch call on a stack, or None.

    The outermost of several nested calls is reported, since that is what the user wrote. User code that
    torch calls back, such as a `__getstate__`, is in no call of torch's.
    """
    found: Optional[Call] = None
    while frame is not None and not stacks.is_users(frame):
        name = frame.f_code.co_name
        if torch_names.is_distributed_file(frame.f_code.co_filename):
            if name in torch_names.RENDEZVOUS_CALLS:
                found = _rendezvous(frame)
            elif name in torch_names.COLLECTIVE_CALLS:
                found = _collective(frame, found)
            elif name in torch_names.P2P_CALLS:
                found = _p2p(frame)
            elif name == torch_names.STORE_BARRIER:
                found = _store_barrier(frame)
        elif found is None and torch_names.is_dataloader_file(frame.f_code.co_filename):
            found = _dataloader(frame)
        elif found is None and torch_names.is_spawn_join(frame.f_code.co_filename, name):
            found = {**_NO_GROUP, "kind": "process", "op": "mp.spawn"}
            found["spawned"] = torch_names.spawned(peek(frame).get("self"))
        elif found is None and torch_names.is_endless_barrier(frame.f_code.co_filename, name):
            found = _endless_barrier(frame)
        elif found is None and torch_names.is_lock_file(frame.f_code.co_filename, name):
            found = _lock_file(frame)
        frame = frame.f_back
    return found


def site(frame: Optional[FrameType]) -> Optional[Dict[str, Any]]:
    """Where in its source the innermost frame of a stack stands, and the objects it can name.

    Returns {file, position: [line, end line, column, end column], names: {expression: class},
    strings: {expression: text}, limits: {expression: seconds}}; the observer reads the source and finds
    the call. The class of a handle carries its operation (`Work.irecv`); `handles[*]` stands for the
    members of a container that are all alike. A limit is a time span, or how long a store waits. Only
    for code that holds a lock or an object of torch's, that sends or receives, or that sleeps and looks
    for a file. Python 3.11 or newer.
    """
    positions = getattr(frame and frame.f_code, "co_positions", None)
    if frame is None or positions is None:
        return None
    polls = "sleep" in frame.f_code.co_names and not FILE_CALLS.isdisjoint(frame.f_code.co_names)
    if not polls and torch_names.c10d() is None:
        return None
    index = frame.f_lasti // 2
    position = next((p for i, p in enumerate(positions()) if i == index), None)
    if position is None or None in position:
        return None
    names: Dict[str, str] = {}
    strings: Dict[str, str] = {}
    limits: Dict[str, float] = {}
    for name, value in _named_values(frame).items():
        _tell(name, value, names, strings)
        limit = seconds(torch_names.store_timeout(value) if names.get(name) == "Store" else value)
        if limit is not None:
            limits[name] = limit
    if not names and not polls and torch_names.P2P_CALLS.isdisjoint(frame.f_code.co_names):
        return None
    return {
        "file": frame.f_code.co_filename,
        "position": list(position),
        "names": names,
        "strings": strings,
        "limits": limits,
    }


def seconds(value: Any) -> Optional[float]:
    """How long a `timedelta` is; None for anything else."""
    tell = getattr(value, "total_seconds", None)
    return float(tell()) if type(value).__module__ == "datetime" and callable(tell) else None


def _named_values(frame: FrameType) -> Dict[str, Any]:
    """What a frame can name: its variables, those of its module, and what `self` holds."""
    found = _visible(frame)
    held = found.get("self")
    if not isinstance(held, (str, int)):
        fields = getattr(held, "__dict__", {})
        found.update({f"self.{field}": value for field, value in list(fields.items())})
    return found


def _tell(name: str, value: Any, names: Dict[str, str], strings: Dict[str, str]) -> None:
    """Note the text or the path that a name stands for, or the class of torch's."""
    pathlib = sys.modules.get("pathlib")
    if isinstance(value, (str, int)) or (pathlib and isinstance(value, pathlib.PurePath)):
        strings[name] = str(value)[:200]
        return
    names.update(_named(name, value))


def _named(name: str, value: Any) -> Dict[str, str]:
    """The class of a torch object by its name, or what all members of a small container are."""
    held = [value]
    if type(value) in (list, tuple, dict) and len(value) <= MEMBERS:
        name, held = f"{name}[*]", list(value.values() if type(value) is dict else value)
    kinds = {_kind(one) for one in held}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {} if kind is None else {name: kind}


def _kind(value: Any) -> Optional[str]:
    if isinstance(value, LOCKS):
        return "lock"
    kind = torch_names.class_of(value)
    operation = torch_names.operation_of(value) if kind == "Work" else None
    return f"{kind}.{operation}" if operation else kind


def peek(frame: FrameType) -> Dict[str, Any]:
    """A copy of a frame's local variables that keeps none of them alive longer than the job does.

    Before Python 3.13, `f_locals` leaves a dictionary on a function's frame, which holds every
    variable until the function returns; it is emptied here unless somebody else holds it too.
    """
    held = frame.f_locals
    copy = dict(held)
    if (
        sys.version_info < (3, 13)
        and frame.f_code.co_flags & CO_OPTIMIZED
        and frame.f_trace is None
        and sys.getrefcount(held) <= 3
    ):
        held.clear()
    return copy


def _visible(frame: FrameType) -> Dict[str, Any]:
    names = peek(frame)
    for name in frame.f_code.co_names:
        if name in frame.f_globals and name not in names:
            names[name] = frame.f_globals[name]
    return names


def _collective(frame: FrameType, inner: Optional[Call]) -> Call:
    values = peek(frame)
    op = frame.f_code.co_name
    local = bool(values.get("use_local_synchronization"))
    if op in torch_names.NEW_GROUP_CALLS:
        group, ranks = torch_names.group_of(None)
        ranks = ranks if inner else _members(values.get("ranks")) or ranks
        op = "new_group"
    else:
        group, ranks = torch_names.group_of(values.get("group"))
    return {
        "kind": "collective",
        "op": op,
        "group": group,
        "ranks": ranks,
        "peers": [],
        "sizes": _sizes(values.get("tensor", values.get("input_tensor", values.get("input")))),
        "root": _peer(values, "src") if op in torch_names.FROM_ROOT else _peer(values, "dst"),
        "key": inner["key"] if inner and op == "new_group" else None,
        "joined": inner.get("joined") if inner and op == "new_group" else None,
        "counted": op == "new_group" and not local,
        "limit": seconds(values.get("timeout")) if op == "monitored_barrier" else None,
    }


def _endless_barrier(frame: FrameType) -> Optional[Call]:
    held = getattr(peek(frame).get("self"), "group", None)
    if held is None:
        return None
    group, ranks = torch_names.group_of(held)
    return {**_NO_GROUP, "kind": "collective", "op": "monitored_barrier", "group": group, "ranks": ranks}


def _members(ranks: Any) -> List[int]:
    """The ranks that a new group is to have; empty where the call does not say.

    Only they meet in the call, unless it ends with a barrier of all.
    """
    if not isinstance(ranks, (list, tuple, range)):
        return []
    return sorted(rank for rank in ranks if isinstance(rank, int))


def _p2p(frame: FrameType) -> Call:
    values = peek(frame)
    group, ranks = torch_names.group_of(values.get("group"))
    op = frame.f_code.co_name
    peer = _peer(values, "src" if "recv" in op else "dst")
    return {
        "kind": "p2p",
        "op": op,
        "group": group,
        "ranks": ranks,
        "peers": [] if peer is None else [peer],
        "sizes": _sizes(values.get("tensor")),
        "key": None,
    }


def _peer(values: Dict[str, Any], name: str) -> Optional[int]:
    """The global rank that a call names by `src` or `dst`, or within its group by `group_src`, ..."""
    peer = values.get(name)
    within = values.get("group_" + name)
    if peer is None and isinstance(within, int):
        peer = torch_names.global_rank(values.get("group"), within)
    return peer if isinstance(peer, int) else None


def _rendezvous(frame: FrameType) -> Call:
    values = peek(frame)
    return {
        **_NO_GROUP,
        "kind": "rendezvous",
        "op": "init_process_group",
        "group": "default",
        "key": str(values.get("init_method") or "env://"),
        "rank": _number(values.get("rank")),
        "world_size": _number(values.get("world_size")),
        "limit": seconds(values.get("timeout")),
    }


def _store_barrier(frame: FrameType) -> Call:
    values = peek(frame)
    return {
        **_NO_GROUP,
        "kind": "store",
        "op": "store_barrier",
        "key": str(values.get("store_key", "")),
        "joined": _number(values.get("worker_count")),
    }


def _dataloader(frame: FrameType) -> Optional[Call]:
    workers = torch_names.dataloader_workers(peek(frame).get("self"))
    if not workers:
        return None
    return {**_NO_GROUP, "kind": "process", "op": "DataLoader", "workers": workers}


def _lock_file(frame: FrameType) -> Call:
    attribute = torch_names.LOCK_CALLS[frame.f_code.co_name][1]
    lock = peek(frame).get("self")
    kernel = any(base.__name__ == "UnixFileLock" for base in type(lock).__mro__)
    op = "flock" if kernel else "lock file"
    return {**_NO_GROUP, "kind": "lock", "op": op, "key": str(getattr(lock, attribute, ""))}


def _sizes(value: Any) -> List[List[int]]:
    shape = getattr(value, "shape", None)
    if shape is None:
        return []
    try:
        return [[int(size) for size in shape]]
    except (TypeError, ValueError, RuntimeError):
        return []


def _number(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and value >= 0 else None
