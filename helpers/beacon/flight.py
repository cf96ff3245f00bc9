"""What torch's Flight Recorder has recorded in this process, and the lines that issued it."""

from __future__ import annotations

import functools
import zlib
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Sequence, Tuple

from . import stacks, torch_names

if TYPE_CHECKING:
    from .record import FlightEntry, FrameEntry, Issued, IssuedCall

    Collectives = Tuple[List[FlightEntry], List[IssuedCall], List[Issued]]
    """The newest of every group, the calls that differ from each other, and which of these each group
    has seen one after the other."""

TAIL = 24
"""Newest collectives of a group that are told in full."""

BELOW = 8
"""Frames of libraries that are told below the user's innermost line."""

OPERATIONS = {
    "all_reduce_barrier": "barrier",
    "_broadcast_oop": "broadcast",
    "_reduce_oop": "reduce",
    "_all_gather_base": "all_gather_into_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "allreduce_coalesced": "all_reduce_coalesced",
    "ALLGATHER_coalesced": "all_gather",
    "REDUCE_SCATTER_coalesced": "reduce_scatter",
    "coalesced": "_coalescing_manager",
}
"""What the user has called, by what torch's part for NCCL calls it (ProcessGroupNCCL.cpp, 2.13)."""

LINES = 500
"""Newest collectives of a group of which the operation and the lines are told."""


def read() -> Collectives:
    """What the recorder of this process holds of collectives, each group's oldest first."""
    return collectives(torch_names.flight_entries(), _is_user)


def collectives(entries: Iterable[Mapping[str, Any]], is_user: Callable[[str], bool]) -> Collectives:
    """What a recorder has recorded of collectives, each group's oldest first.

    An entry is done once it is `retired`: on gloo `state` never leaves "scheduled" (torch 2.13).

    Args:
        entries: as torch dumps them, oldest first; is_user: whether a file is the user's own.
    """
    by_group: Dict[str, List[Mapping[str, Any]]] = {}
    for entry in entries:
        if not entry.get("is_p2p"):
            by_group.setdefault(str((entry.get("process_group") or [""])[0]), []).append(entry)
    tail = [_entry(group, entry) for group, newest in by_group.items() for entry in newest[-TAIL:]]
    lines: Dict[int, Tuple[FrameEntry, ...]] = {}  # by identity: equal stacks are one object
    calls: Dict[Tuple[str, Tuple[FrameEntry, ...]], int] = {}
    issued: List[Issued] = []
    numbers: List[int]
    for group, group_entries in by_group.items():
        first, numbers = 0, []
        for entry in group_entries[-LINES:]:
            if not numbers or _seq(entry) != first + len(numbers):
                first, numbers = _seq(entry), []
            frames = entry.get("frames") or ()
            if id(frames) not in lines:
                lines[id(frames)] = _lines(frames, is_user)
            numbers.append(calls.setdefault((_op(entry), lines[id(frames)]), len(calls)))
        issued.append({"group": group, "first": first, "calls": numbers})
    distinct: List[IssuedCall] = [{"op": op, "frames": list(frames)} for op, frames in calls]
    return tail, distinct, issued


def _entry(group: str, entry: Mapping[str, Any]) -> FlightEntry:
    return {
        "group": group,
        "seq": _seq(entry),
        "op": _op(entry),
        "sizes": entry.get("input_sizes") or [],
        "dtype": _dtype(entry.get("input_dtypes")),
        "outputs": entry.get("output_sizes") or [],
        "done": bool(entry.get("retired")) or entry.get("state") == "completed",
        "created": int(entry.get("time_created_ns", 0)),
    }


def _dtype(dtypes: Any) -> str:
    """`Float`; empty where the inputs have several types, or none."""
    types = {dtypes} if isinstance(dtypes, str) else set(dtypes or ())
    return str(types.pop()) if len(types) == 1 else ""


def _seq(entry: Mapping[str, Any]) -> int:
    return int(entry.get("collective_seq_id", 0))


def _op(entry: Mapping[str, Any]) -> str:
    return operation(entry)[1]


def operation(entry: Mapping[str, Any]) -> Tuple[str, str]:
    """The backend and the operation of an entry, as users call it: `nccl:all_reduce_barrier`."""
    backend, _, name = str(entry.get("profiling_name", "")).rpartition(":")
    return backend, OPERATIONS.get(name, name)


@functools.lru_cache(maxsize=512)
def _is_user(file: str) -> bool:
    return stacks.is_user(file, "")


def _lines(
    frames: Sequence[Mapping[str, Any]], is_user: Callable[[str], bool]
) -> Tuple[FrameEntry, ...]:
    """The user's frames, innermost first; those of libraries between two of them become one.

    The line of that one is a checksum: it is equal where the same lines of the libraries were passed. Of
    those below the user's innermost line, the outermost say what it has called.
    """
    entries: List[FrameEntry] = []
    between: List[FrameEntry] = []
    for frame in frames:
        file, line, function = str(frame["filename"]), int(frame["line"]), str(frame["name"])
        if not is_user(file):
            between.append((file, line, function, False))
            continue
        if not entries:
            entries += between[-BELOW:]
        elif between:
            file_between, _, function_between, _ = between[-1]
            checksum = zlib.crc32(repr(between).encode())
            entries.append((file_between, checksum, function_between, False))
        between = []
        entries.append((file, line, function, True))
    return tuple(entries)
