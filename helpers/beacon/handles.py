"""Who is at the other end of a stored handle of torch's."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Optional

from . import torch_names
from .variables import MEMBERS


def peer_of(handle: Any, frames: Iterable[Mapping[str, Any]], *, by_key: bool = False) -> Optional[int]:
    """The rank at the other end of a handle that came from a batch of operations; None if unknown.

    It is that of the operation at the same place of a list of the same length, or of the only one that
    does the same.

    Args:
        frames: the variables of the frames, innermost first.
        by_key: whether a number under which a dictionary has the handle is a rank.
    """
    for values in frames:
        peer = _peer_in_batches(handle, values)
        if peer is None and by_key:
            peer = _key_of(handle, values)
        if peer is not None:
            return peer
    return None


def _peer_in_batches(handle: Any, values: Mapping[str, Any]) -> Optional[int]:
    sequences = [seq for seq in values.values() if type(seq) in (list, tuple) and len(seq) <= MEMBERS]
    batches = [[torch_names.point_to_point(member) for member in seq] for seq in sequences if seq]
    batches = [batch for batch in batches if None not in batch]
    for works in sequences:
        place = next((number for number, work in enumerate(works) if work is handle), None)
        same = [batch for batch in batches if len(batch) == len(works)]
        operation = same[0][place] if place is not None and len(same) == 1 else None
        if operation is not None:
            return operation[1]
    name = torch_names.operation_of(handle)
    peers = [peer for batch in batches for kind, peer in filter(None, batch) if kind == name]
    return peers[0] if len(peers) == 1 else None


def _key_of(handle: Any, values: Mapping[str, Any]) -> Optional[int]:
    for table in values.values():
        if type(table) is dict and len(table) <= MEMBERS:
            for key, works in table.items():
                if type(key) is int and type(works) is list and any(work is handle for work in works):
                    return key
    return None
