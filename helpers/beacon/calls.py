"""What a blocked thread is calling: the torch operation on its stack, with its arguments."""

from __future__ import annotations

import _thread
import re
import sys
from types import FrameType
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Protocol, Sequence, Tuple

from . import stacks, torch_names
from .record import Arguments, Call, Site

CO_OPTIMIZED = 1

LOCKS = (type(_thread.allocate_lock()), _thread.RLock)

MEMBERS = 64
"""The largest container whose members are looked at."""

SECRET = re.compile(r"token|secret|passw|credential|api_?key|access_?key", re.IGNORECASE)
"""Names of variables whose text is not told."""

FILE_CALLS = frozenset(
    ("exists", "lexists", "isfile", "is_file", "open", "touch", "mkdir", "flock", "lockf")
)
"""Functions by which a program looks for a lock file, makes one, or locks a file."""

_NOTHING: Arguments = {
    "group": None,
    "ranks": [],
    "peers": [],
    "sizes": [],
    "tag": None,
    "key": None,
    "root": None,
    "limit": None,
    "counted": False,
    "rank": None,
    "world_size": None,
    "workers": {},
    "spawned": {},
}


class StackFrame(Protocol):
    """A frame of a stack, of this process or as py-spy has read it.

    Attributes:
        file: of its source.
        function: its name, without that of a class.
    """

    file: str
    function: str

    def local(self, name: str) -> Any:
        """What a variable holds.

        None where there is none. In place of an object that cannot be read, an object without
        attributes whose class has the same name.
        """

    def group_of(self, value: Any) -> Tuple[Optional[str], List[int]]:
        """Label and global ranks of a group, None for the default one; None and [] if unknown."""

    def global_rank(self, within: int) -> Optional[int]:
        """The rank that has this number in the group the function was given."""


class LiveFrame:
    """A frame of this process."""

    def __init__(self, frame: FrameType) -> None:
        self.file = frame.f_code.co_filename
        self.function = frame.f_code.co_name
        self.frame = frame

    def local(self, name: str) -> Any:
        """What a variable holds; None where there is none."""
        return peek(self.frame).get(name)

    def group_of(self, value: Any) -> Tuple[Optional[str], List[int]]:
        """Label and global ranks of a group, None for the default one."""
        return torch_names.group_of(value)

    def global_rank(self, within: int) -> Optional[int]:
        """The rank that has this number in the group the function was given."""
        return torch_names.global_rank(self.local("group"), within)


def inside(frame: Optional[FrameType]) -> Iterator[LiveFrame]:
    """The library frames below the innermost line of the user's code, innermost first.

    User code that torch calls back, such as a `__getstate__`, is not in a call of torch's.
    """
    while frame is not None and not stacks.is_users(frame):
        yield LiveFrame(frame)
        frame = frame.f_back


def torch_call(frames: Iterable[StackFrame]) -> Optional[Call]:
    """The torch call on a stack, or None.

    The outermost of several nested calls is reported, since that is what the user wrote.

    Args:
        frames: those below the innermost line of the user's code, innermost first.
    """
    found: Optional[Call] = None
    stack = list(frames)
    for index, frame in enumerate(stack):
        if torch_names.is_distributed_file(frame.file):
            found = _distributed(frame, found) or found
        elif torch_names.is_rpc_file(frame.file):
            found = _rpc(frame) or found
        elif found is None:
            found = _waiting(frame, stack[index + 1 :])
    return found


def _distributed(frame: StackFrame, inner: Optional[Call]) -> Optional[Call]:
    if frame.function in torch_names.RENDEZVOUS_CALLS:
        return _rendezvous(frame)
    if frame.function in torch_names.NEW_GROUP_CALLS:
        return _new_group(frame, inner)
    if frame.function in torch_names.COLLECTIVE_CALLS:
        return _collective(frame)
    if frame.function in torch_names.P2P_CALLS:
        return _p2p(frame)
    return _store_barrier(frame) if frame.function == torch_names.STORE_BARRIER else None


def _waiting(frame: StackFrame, outer: Sequence[StackFrame]) -> Optional[Call]:
    """What a function outside of `torch.distributed` waits for."""
    file, name = frame.file, frame.function
    if torch_names.is_dataloader_file(file):
        return _dataloader(frame)
    if torch_names.is_future(file, name) and torch_names.rpc_rank() is not None:
        return {**_NOTHING, "kind": "rpc", "op": name}
    if torch_names.is_batched_wait(file, name):
        return _batched_wait(frame, outer)
    if torch_names.is_spawn_join(file, name):
        return _spawn(frame, outer)
    if torch_names.is_endless_barrier(file, name):
        return _endless_barrier(frame)
    return _lock_file(frame) if torch_names.is_lock_file(file, name) else None


def site(frame: Optional[FrameType], waits_inside: bool = False) -> Optional[Site]:
    """The position of a frame in its source, and the objects it can name.

    The observer reads the source and finds the call. Only for code that holds a lock or an object of
    torch's, that sends or receives, or that sleeps and looks for a file. Python 3.11 or newer.

    Args:
        waits_inside: True where the thread may wait for a lock.
    """
    positions = getattr(frame and frame.f_code, "co_positions", None)
    if frame is None or positions is None:
        return None
    polls = "sleep" in frame.f_code.co_names and not FILE_CALLS.isdisjoint(frame.f_code.co_names)
    idle = torch_names.c10d() is None and "sqlite3" not in sys.modules and not waits_inside
    if not polls and idle:
        return None
    index = frame.f_lasti // 2
    position = next((p for i, p in enumerate(positions()) if i == index), None)
    place = [number for number in position or () if number is not None]
    if len(place) != 4:
        return None
    names: Dict[str, str] = {}
    strings: Dict[str, str] = {}
    limits: Dict[str, float] = {}
    peers: Dict[str, int] = {}
    values = named_values(frame)
    for name, value in values.items():
        _tell(name, value, names, strings)
        peer = peer_of(value, [values]) if names.get(name, "").startswith("Work.") else None
        if peer is not None:
            peers[name] = peer
        limit = seconds(torch_names.store_timeout(value) if names.get(name) == "Store" else value)
        if limit is not None:
            limits[name] = limit
    if not names and not polls and torch_names.P2P_CALLS.isdisjoint(frame.f_code.co_names):
        return None
    return {
        "file": frame.f_code.co_filename,
        "position": place,
        "names": names,
        "strings": strings,
        "limits": limits,
        "peers": peers,
    }


def seconds(value: Any) -> Optional[float]:
    """How long a `timedelta` is; None for anything else."""
    tell = getattr(value, "total_seconds", None)
    return float(tell()) if type(value).__module__ == "datetime" and callable(tell) else None


def named_values(frame: FrameType) -> Dict[str, Any]:
    """What a frame can name: its variables, those of its module, and what `self` holds."""
    found = _visible(frame)
    held = found.get("self")
    if not isinstance(held, (str, int)):
        fields = getattr(held, "__dict__", {})
        found.update({f"self.{field}": value for field, value in list(fields.items())})
    return found


def _tell(name: str, value: Any, names: Dict[str, str], strings: Dict[str, str]) -> None:
    """Note the text or the path that a name stands for, or its class."""
    pathlib = sys.modules.get("pathlib")
    if isinstance(value, str) and SECRET.search(name):
        return
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
    if type(value).__module__ == "sqlite3" and type(value).__name__ in ("Connection", "Cursor"):
        return "sqlite"
    kind = torch_names.class_of(value)
    operation = torch_names.operation_of(value) if kind == "Work" else None
    return f"{kind}.{operation}" if operation else kind


def peek(frame: FrameType) -> Dict[str, Any]:
    """A copy of a frame's local variables that keeps none of them alive longer than the job does.

    Before Python 3.13, `f_locals` leaves a dictionary on a function's frame, which holds every
    variable until the function returns; it is emptied here unless something else holds it too.
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


def _collective(frame: StackFrame) -> Call:
    op = frame.function
    group, ranks = frame.group_of(frame.local("group"))
    return {
        **_NOTHING,
        "kind": "collective",
        "op": op,
        "group": group,
        "ranks": ranks,
        "sizes": _sizes(frame, "tensor", "input_tensor", "input"),
        "root": _peer(frame, "src") if op in torch_names.FROM_ROOT else _peer(frame, "dst"),
        "limit": seconds(frame.local("timeout")) if op == "monitored_barrier" else None,
    }


def _new_group(frame: StackFrame, inner: Optional[Call]) -> Call:
    """A call of the group's members-to-be; once in the barrier at its end, of all ranks."""
    key = inner["key"] if inner else None
    local = bool(frame.local("use_local_synchronization"))
    group, ranks = frame.group_of(None)
    members = [] if key is not None and not local else _members(frame.local("ranks"))
    if members is None:
        group, ranks = None, []
    return {
        **_NOTHING,
        "kind": "collective",
        "op": "new_group",
        "group": group,
        "ranks": members or ranks,
        "key": key,
        "counted": not local,
    }


def _members(ranks: Any) -> Optional[List[int]]:
    """The ranks of a new group; empty for all, None where the call does not say."""
    if ranks is None:
        return []
    listed = isinstance(ranks, (list, tuple, range)) and all(isinstance(rank, int) for rank in ranks)
    return sorted(ranks) if listed else None


def _endless_barrier(frame: StackFrame) -> Optional[Call]:
    barrier = frame.local("self")
    held = getattr(barrier, "group", barrier)
    if held is None:  # there are no other ranks to wait for
        return None
    group, ranks = frame.group_of(held)
    return {**_NOTHING, "kind": "collective", "op": "monitored_barrier", "group": group, "ranks": ranks}


def _p2p(frame: StackFrame) -> Call:
    group, ranks = frame.group_of(frame.local("group"))
    peer = _peer(frame, "src" if "recv" in frame.function else "dst")
    return {
        **_NOTHING,
        "kind": "p2p",
        "op": frame.function,
        "group": group,
        "ranks": ranks,
        "peers": [] if peer is None else [peer],
        "sizes": _sizes(frame, "tensor"),
        "tag": _number(frame.local("tag")) if torch_names.has_tags(frame.local("group")) else None,
    }


def _peer(frame: StackFrame, name: str) -> Optional[int]:
    """The global rank that a call names by `src` or `dst`, or by `group_src` or `group_dst`."""
    peer, within = frame.local(name), frame.local("group_" + name)
    if peer is None and isinstance(within, int):
        peer = frame.global_rank(within)
    return peer if isinstance(peer, int) else None


def _rendezvous(frame: StackFrame) -> Call:
    return {
        **_NOTHING,
        "kind": "rendezvous",
        "op": "init_process_group",
        "group": "default",
        "key": _text(frame.local("init_method")) or "env://",
        "rank": _number(frame.local("rank")),
        "world_size": _number(frame.local("world_size")),
        "limit": seconds(frame.local("timeout")),
    }


def _rpc(frame: StackFrame) -> Optional[Call]:
    if frame.function == "init_rpc":
        options = frame.local("rpc_backend_options")
        return {
            **_NOTHING,
            "kind": "rpc",
            "op": frame.function,
            "key": _text(getattr(options, "init_method", None)) or "env://",
            "rank": _number(frame.local("rank")),
            "world_size": _number(frame.local("world_size")),
        }
    method, variable, remote = torch_names.REMOTE
    if frame.function == method and frame.local(variable) == remote:
        peer, op = torch_names.rpc_owner(frame.local("self")), remote
    elif frame.function in torch_names.RPC_CALLS:
        peer, op = torch_names.rpc_peer(frame.local("to")), frame.function
    else:
        return None
    return {**_NOTHING, "kind": "rpc", "op": op, "peers": [] if peer is None else [peer]}


def _store_barrier(frame: StackFrame) -> Call:
    return {
        **_NOTHING,
        "kind": "store",
        "op": "store_barrier",
        "key": _text(frame.local("store_key")),
    }


def _dataloader(frame: StackFrame) -> Optional[Call]:
    iterator = frame.local("self")
    if frame.function not in torch_names.LOADER_WAITS or not torch_names.is_loader(iterator):
        return None
    workers = torch_names.dataloader_workers(iterator)
    return {**_NOTHING, "kind": "process", "op": "DataLoader", "workers": workers}


def _batched_wait(frame: StackFrame, outer: Sequence[StackFrame]) -> Optional[Call]:
    handle = frame.local(torch_names.BATCHED_WAIT[2])
    operation = torch_names.operation_of(handle)
    if operation not in ("isend", "irecv"):
        return None
    frames = [one.frame for one in (frame, *outer) if isinstance(one, LiveFrame)]
    peer = peer_of(handle, map(peek, frames), by_key=True)
    return {**_NOTHING, "kind": "p2p", "op": operation, "peers": [] if peer is None else [peer]}


def peer_of(handle: Any, frames: Iterable[Mapping[str, Any]], *, by_key: bool = False) -> Optional[int]:
    """The rank at the other end of a handle that came from a batch of operations; None if unknown.

    It is that of the operation at the same place of a list of the same length, or of the only one that
    does the same.

    Args:
        frames: the variables of the frames, innermost first.
        by_key: whether a number under which a dictionary has the handle is a rank.
    """
    operation = torch_names.operation_of(handle)
    for values in frames:
        held = [one for one in values.values() if type(one) in (list, tuple) and len(one) <= MEMBERS]
        batches = [[torch_names.point_to_point(member) for member in one] for one in held if one]
        batches = [batch for batch in batches if None not in batch]
        for works in held:
            place = next((number for number, work in enumerate(works) if work is handle), None)
            same = [batch for batch in batches if len(batch) == len(works)]
            told = same[0][place] if place is not None and len(same) == 1 else None
            if told is not None:
                return told[1]
        alike = [peer for batch in batches for name, peer in filter(None, batch) if name == operation]
        if len(alike) == 1:
            return alike[0]
        for table in values.values() if by_key else ():
            if type(table) is dict and len(table) <= MEMBERS:
                for key, works in table.items():
                    if type(key) is int and type(works) is list and any(one is handle for one in works):
                        return key
    return None


def _spawn(frame: StackFrame, outer: Sequence[StackFrame]) -> Call:
    numbers = (_number(one.local("nprocs")) for one in outer)
    return {
        **_NOTHING,
        "kind": "process",
        "op": "mp.spawn",
        "spawned": torch_names.spawned(frame.local("self")),
        "world_size": next((number for number in numbers if number is not None), None),
    }


def _lock_file(frame: StackFrame) -> Call:
    lock = frame.local("self")
    path = getattr(lock, torch_names.LOCK_CALLS[frame.function][1], None)
    op = "flock" if torch_names.is_kernel_lock(lock) else "lock file"
    return {**_NOTHING, "kind": "lock", "op": op, "key": None if path is None else str(path)}


def _sizes(frame: StackFrame, *names: str) -> List[List[int]]:
    shapes = (getattr(frame.local(name), "shape", None) for name in names)
    shape = next((shape for shape in shapes if shape is not None), ())
    try:
        return [[int(size) for size in shape]] if shape else []
    except (TypeError, ValueError, RuntimeError):
        return []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> Optional[int]:
    return value if isinstance(value, int) and value >= 0 else None
