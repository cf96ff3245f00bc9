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
