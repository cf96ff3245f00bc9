"""Functions of C++ on the stack of a thread -> the call of torch's, or of NCCL's, in which it waits."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..beacon.calls import NOTHING
from ..beacon.record import Call

_CALLS: tuple[tuple[str, Call], ...] = (
    (
        r"\bc10d::(?:TCP|File|Hash|Prefix)Store::(?:do)?(?:[Gg]et)\b",
        {"kind": "store", "op": "get", **NOTHING},
    ),
    (
        r"\bc10d::(?:TCP|File|Hash|Prefix)Store::(?:do)?(?:[Ww]ait)(?:ForWorkers)?\b",
        {"kind": "store", "op": "wait", **NOTHING},
    ),
    (
        r"\bc10d::ProcessGroupGloo::RecvWork::wait\b|\bgloo::transport::\w+::UnboundBuffer::waitRecv\b",
        {"kind": "p2p", "op": "recv", **NOTHING},
    ),
    (
        r"\bc10d::ProcessGroupGloo::SendWork::wait\b|\bgloo::transport::\w+::UnboundBuffer::waitSend\b",
        {"kind": "p2p", "op": "send", **NOTHING},
    ),
    (r"\bp?ncclCommInitRank\w*", {"kind": "collective", "op": "ncclCommInitRank", **NOTHING}),
    (r"\bbootstrap(?:Init|AllGather|Barrier)\w*", {"kind": "collective", "op": "bootstrap", **NOTHING}),
)
"""Function -> what it waits in: torch 1.13 to 2.15, torch/csrc/distributed/c10d/TCPStore.cpp and
ProcessGroupGloo.cpp; gloo, transport/*/unbound_buffer.cc; NCCL 2.14 to 2.30, init.cc, bootstrap.cc."""

_CARRIED = re.compile(
    r"\bgloo::(?P<op>all_?reduce|all_?gatherv?|broadcast|barrier|gather|scatter|reduce)\b"
)
"""A collective of gloo's, which waits for messages of its own: gloo/*.cc."""


def call(functions: Iterable[str]) -> Call | None:
    """The call in which a thread is; None where none of its functions tells one.

    Args:
        functions: of its stack, innermost first. The outermost one that is known says what it waits in:
            the others serve that.
    """
    outermost: Call | None = None
    for function in functions:
        if carried := _CARRIED.search(function):
            return {"kind": "collective", "op": carried["op"], **NOTHING}
        outermost = next((call for name, call in _CALLS if re.search(name, function)), outermost)
    return outermost
