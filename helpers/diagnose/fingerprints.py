"""The calls of ranks as TORCH_DISTRIBUTED_DEBUG=DETAIL has compared them. No I/O.

torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp, 1.9 to 2.15; the number since 2.1.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..model.op_types import users_name

COMPARED = re.compile(r"Detected mismatch between collectives on ranks")

_FINGERPRINT = re.compile(
    r"Rank (\d+) is running collective: CollectiveFingerPrint\((?:SequenceNumber=(\d+))?(?:, )?"
    r"OpType=(\w+)(?:, TensorShape=\[([\d, ]*)\])?"
)


class Fingerprint(NamedTuple):
    """The call of a rank: its operation, its number and its sizes, as far as they are told."""

    op: str
    seq: int | None
    sizes: str | None


def different_calls(message: str) -> dict[int, Fingerprint] | None:
    """Rank -> its call, where ranks were not in one call as far as a message has it.

    None for any other message, and for one call with different sizes. Of what is cut off it is
    only known that the ranks differ.
    """
    if not COMPARED.search(message):
        return None
    calls = {
        int(rank): Fingerprint(users_name(op), int(seq) if seq else None, sizes or None)
        for rank, seq, op, sizes in _FINGERPRINT.findall(message)
    }
    one_call = len(calls) > 1 and len({(call.op, call.seq) for call in calls.values()}) == 1
    sizes = {call.sizes for call in calls.values()}
    return None if one_call and len(sizes) > 1 and None not in sizes else calls
