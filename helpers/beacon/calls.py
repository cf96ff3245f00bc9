"""What a blocked thread is calling: the torch operation on its stack, with its arguments."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any, Iterable, Iterator, List, Optional, Protocol, Sequence, Tuple

from . import stacks, torch_names
from .handles import peer_of
from .membership import members
from .variables import peek, seconds

if TYPE_CHECKING:
    from .record import Arguments, Call, Members

NOTHING: Arguments = {
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
"""Of a call of which nothing is known."""


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

    def group_of(self, value: Any) -> Tuple[Optional[str], Members]:
        """Label and members of a group, None for the default one; None and no members if unknown."""

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

    def group_of(self, value: Any) -> Tuple[Optional[str], Members]:
        """Label and members of a group, None for the default one."""
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
    call: Optional[Call] = None
    stack = list(frames)
    for index, frame in enumerate(stack):
        if torch_names.is_distributed_file(frame.file):
            call = _distributed(frame, call) or call
        elif torch_names.is_rpc_file(frame.file):
            call = _rpc(frame) or call
        elif call is None:
            call = _waiting(frame, stack[index + 1 :])
    return call


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
        return {**NOTHING, "kind": "rpc", "op": name}
    if torch_names.is_batched_wait(file, name):
        return _batched_wait(frame, outer)
    if torch_names.is_spawn_join(file, name):
        return _spawn(frame, outer)
    if torch_names.is_endless_barrier(file, name):
        return _endless_barrier(frame)
    return _lock_file(frame) if torch_names.is_lock_file(file, name) else None


def _collective(frame: StackFrame) -> Call:
    op = frame.function
    group, ranks = frame.group_of(frame.local("group"))
    return {
        **NOTHING,
        "kind": "collective",
        "op": op,
        "group": group,
        **ranks,
        "sizes": _sizes(frame, "tensor", "input_tensor", "input"),
        "root": _peer(frame, "src") if op in torch_names.FROM_ROOT else _peer(frame, "dst"),
        "limit": seconds(frame.local("timeout")) if op == "monitored_barrier" else None,
    }


def _new_group(frame: StackFrame, inner: Optional[Call]) -> Call:
    """A call of the group's members-to-be; once in the barrier at its end, of all ranks."""
    key = inner["key"] if inner else None
    local = bool(frame.local("use_local_synchronization"))
    group, ranks = frame.group_of(None)
    new_ranks = [] if key is not None and not local else _new_ranks(frame.local("ranks"))
    if new_ranks is None:
        group, ranks = None, members(())
    return {
        **NOTHING,
        "kind": "collective",
        "op": "new_group",
        "group": group,
        **(members(new_ranks) if new_ranks else ranks),
        "key": key,
        "counted": not local,
    }


def _new_ranks(ranks: Any) -> Optional[List[int]]:
    """The ranks of a new group; empty for all, None where the call does not say."""
    if ranks is None:
        return []
    listed = isinstance(ranks, (list, tuple, range)) and all(isinstance(rank, int) for rank in ranks)
    return list(ranks) if listed else None


def _endless_barrier(frame: StackFrame) -> Optional[Call]:
    barrier = frame.local("self")
    process_group = getattr(barrier, "group", barrier)
    if process_group is None:  # there are no other ranks to wait for
        return None
    group, ranks = frame.group_of(process_group)
    return {**NOTHING, **ranks, "kind": "collective", "op": "monitored_barrier", "group": group}


def _p2p(frame: StackFrame) -> Call:
    group, ranks = frame.group_of(frame.local("group"))
    peer = _peer(frame, "src" if "recv" in frame.function else "dst")
    return {
        **NOTHING,
        "kind": "p2p",
        "op": frame.function,
        "group": group,
        **ranks,
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
        **NOTHING,
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
            **NOTHING,
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
    return {**NOTHING, "kind": "rpc", "op": op, "peers": [] if peer is None else [peer]}


def _store_barrier(frame: StackFrame) -> Call:
    return {
        **NOTHING,
        "kind": "store",
        "op": "store_barrier",
        "key": _text(frame.local("store_key")),
    }


def _dataloader(frame: StackFrame) -> Optional[Call]:
    iterator = frame.local("self")
    if frame.function not in torch_names.LOADER_WAITS or not torch_names.is_loader(iterator):
        return None
    workers = torch_names.dataloader_workers(iterator)
    return {**NOTHING, "kind": "process", "op": "DataLoader", "workers": workers}


def _batched_wait(frame: StackFrame, outer: Sequence[StackFrame]) -> Optional[Call]:
    handle = frame.local(torch_names.BATCHED_WAIT[2])
    operation = torch_names.operation_of(handle)
    if operation not in ("isend", "irecv"):
        return None
    frames = [live.frame for live in (frame, *outer) if isinstance(live, LiveFrame)]
    peer = peer_of(handle, map(peek, frames), by_key=True)
    return {**NOTHING, "kind": "p2p", "op": operation, "peers": [] if peer is None else [peer]}


def _spawn(frame: StackFrame, outer: Sequence[StackFrame]) -> Call:
    numbers = (_number(caller.local("nprocs")) for caller in outer)
    return {
        **NOTHING,
        "kind": "process",
        "op": "mp.spawn",
        "spawned": torch_names.spawned(frame.local("self")),
        "world_size": next((number for number in numbers if number is not None), None),
    }


def _lock_file(frame: StackFrame) -> Call:
    lock = frame.local("self")
    path = getattr(lock, torch_names.LOCK_CALLS[frame.function][1], None)
    op = "flock" if torch_names.is_kernel_lock(lock) else "lock file"
    return {**NOTHING, "kind": "lock", "op": op, "key": None if path is None else str(path)}


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
