"""Whether a process has reached the operation in which another one waits."""

from __future__ import annotations

import math

from ..model.facts import Collective, ProcessView, Wait

Sizes = tuple[tuple[int, ...], ...]

SAME_SIZE = ("all_reduce", "broadcast", "reduce", "all_gather", "all_gather_into_tensor")
"""Collectives whose input must have one size on all ranks."""

UNNAMED = "wait"
"""The wait for a handle that may be of a send or of a receive: nothing shows which."""

SENDS = ("send", "isend", "send_object_list")


def arrived(process: ProcessView | None, wait: Wait) -> bool:
    """True when a process is at the collective of `wait`, or past it; False for one not seen."""
    if process is None:
        return False
    if wait.seq is not None:
        issued = [entry for entry in process.collectives if entry.group == wait.group]
        if _other_root(process, wait):
            return False
        if issued and issued[0].seq > wait.seq:
            return True
        return any(entry.seq == wait.seq and _matches(entry, wait) for entry in issued)
    place = (wait.kind, wait.op, wait.group)
    same = [other for other in process.waits if (other.kind, other.op, other.group) == place]
    if wait.number is None or process.groups is None:
        return bool(same)
    if any(other.number == wait.number for other in same):
        return any(other.group_ranks == wait.group_ranks for other in same)
    return process.groups >= wait.number


def serves(process: ProcessView | None, rank: int, wait: Wait) -> bool:
    """True when a process is in the other half of the point-to-point `wait` of `rank`."""
    waits = process.waits if process is not None and process.alive else ()
    return any(
        other.kind == "p2p"
        and (UNNAMED in (other.op, wait.op) or (other.op in SENDS) != (wait.op in SENDS))
        and (not other.peers or rank in other.peers)
        for other in waits
    )


def contradicts(process: ProcessView | None, wait: Wait) -> bool:
    """True for a process that has issued another operation at the place of `wait`."""
    issued = process.collectives if process is not None else ()
    return wait.seq is not None and any(
        (entry.group, entry.seq) == (wait.group, wait.seq) and entry.op != wait.op for entry in issued
    )


def _matches(entry: Collective, wait: Wait) -> bool:
    """True when an issued collective is the one of `wait`, as far as both ranks tell.

    A rank may have finished an operation whose sizes differ: gloo releases the one that has nothing
    more to receive. NCCL gathers tensors of different sizes, so what is done there says nothing.
    """
    told = entry.op in SAME_SIZE and not (entry.done and entry.op.startswith("all_gather"))
    return entry.op == wait.op and not (told and differ(entry.sizes, wait.sizes))


def differ(one: Sizes, other: Sizes) -> bool:
    """True for tensors that hold different numbers of elements; a shape alone may differ."""
    return bool(one and other) and sum(map(math.prod, one)) != sum(map(math.prod, other))


def _other_root(process: ProcessView, wait: Wait) -> bool:
    """True when the process is in the collective of `wait`, but with another root."""
    return any(
        (other.op, other.group, other.seq) == (wait.op, wait.group, wait.seq)
        and None not in (other.root, wait.root)
        and other.root != wait.root
        for other in process.waits
    )
