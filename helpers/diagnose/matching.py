"""Whether a process has reached the operation in which another one waits, and where ranks part."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from ..model.clauses import grouped
from ..model.facts import Collective, ProcessView, RankView
from ..model.waits import SEND_OR_RECEIVE, UNKNOWN_CALL, ForRanks, InCollective, InP2P

Divergence = tuple[str, int, dict[int, Collective]]
"""A group, a sequence number in it, and what each rank issued there."""

SAME_SIZE = (
    *("all_reduce", "all_reduce_coalesced", "broadcast", "reduce"),
    *("all_gather", "all_gather_into_tensor", "all_gather_into_tensor_coalesced"),
    *("reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_tensor_coalesced"),
)
"""Collectives whose input must have one size, and one type, on all ranks."""


def arrived(process: ProcessView | None, wait: InCollective) -> bool:
    """True when a process is at the collective of `wait`, or past it; False for one not seen."""
    if process is None:
        return False
    if wait.seq is not None:
        return not _other_root(process, wait) and _has_come(process, wait, wait.seq)
    place = (wait.op, wait.group)
    same = [entry for entry in _collectives(process) if (entry.op, entry.group) == place]
    if wait.group_number is None or process.groups_made is None:
        return bool(same)
    if any(entry.group_number == wait.group_number for entry in same):
        return any(entry.members == wait.members for entry in same)
    return process.groups_made >= wait.group_number


def _has_come(process: ProcessView, wait: InCollective, seq: int) -> bool:
    """True when a process has issued the collective of a number, or only later ones are known of it."""
    later = False
    for entry in reversed(process.collectives):  # the newest are the ones in question
        if entry.group == wait.group:
            if entry.seq < seq:
                return False
            if entry.seq == seq and _matches(entry, wait):
                return True
            later = entry.seq > seq
    return later


def likeness(wait: InCollective) -> tuple[object, ...]:
    """The same for two calls where `arrived` and `contradicts` say the same of both, for any process.

    Members go by identity: thousands of ranks share one tuple of thousands.
    """
    elements = sum(map(math.prod, wait.sizes)) if wait.sizes else None
    tensors = (elements, wait.dtype) if wait.op in SAME_SIZE else ()
    return wait.op, wait.group, wait.seq, wait.root, wait.group_number, id(wait.members), tensors


def _collectives(process: ProcessView) -> list[InCollective]:
    return [wait for wait in process.waits if isinstance(wait, InCollective)]


def serves(process: ProcessView | None, rank: int, wait: InP2P) -> bool:
    """True when a process is in the other half of the point-to-point `wait` of `rank`."""
    waits = process.waits if process is not None and process.alive else ()
    return any(
        isinstance(half, InP2P)
        and (SEND_OR_RECEIVE in (half.op, wait.op) or half.sends != wait.sends)
        and (not half.peers or rank in half.peers)
        and (None in (half.tag, wait.tag) or half.tag == wait.tag)
        for half in waits
    )


def contradicts(process: ProcessView | None, wait: ForRanks) -> bool:
    """True for a process that has issued another operation at the place of `wait`."""
    issued = process.collectives if process is not None else ()
    return isinstance(wait, InCollective) and any(
        (entry.group, entry.seq) == (wait.group, wait.seq) and not _same_call(entry.op, wait.op)
        for entry in issued
    )


def _matches(entry: Collective, wait: InCollective) -> bool:
    """True when an issued collective is the one of `wait`, as far as both ranks tell.

    A rank may have finished an operation whose sizes differ: gloo releases the one that has nothing
    more to receive. NCCL gathers tensors of different sizes, so what is done there says nothing.
    """
    comparable = entry.op in SAME_SIZE and not (entry.done and entry.op.startswith("all_gather"))
    return _same_call(entry.op, wait.op) and not (comparable and differ(entry, wait))


def _same_call(op: str, peer_op: str) -> bool:
    """True for two operations that may be the same one."""
    return op == peer_op or UNKNOWN_CALL in (op, peer_op)


def differ(call: Collective | InCollective, peer: Collective | InCollective) -> bool:
    """True for tensors of different numbers of elements, or of different types; a shape may differ."""
    if call.dtype and peer.dtype and call.dtype != peer.dtype:
        return True
    sized = bool(call.sizes and peer.sizes)
    return sized and sum(map(math.prod, call.sizes)) != sum(map(math.prod, peer.sizes))


def _other_root(process: ProcessView, wait: InCollective) -> bool:
    """True when the process is in the collective of `wait`, but with another root."""
    return wait.root is not None and any(
        (entry.op, entry.group, entry.seq) == (wait.op, wait.group, wait.seq)
        and entry.root not in (None, wait.root)
        for entry in _collectives(process)
    )


def divergence(ranks: Mapping[int, RankView], among: Collection[int] | None = None) -> Divergence | None:
    """The first place at which members of a group issued different operations.

    Args:
        among: two of these ranks have to differ; None for any two.

    Returns (group, sequence number, rank -> what it issued there, other ranks too), or None.
    """
    eligible = ranks if among is None else among
    tails = {rank: view.process.collectives for rank, view in ranks.items() if view.process}
    pending = {(entry.group, entry.seq) for tail in tails.values() for entry in tail if not entry.done}
    numbers = {seq for _, seq in pending}
    by_place: dict[tuple[str, int], dict[int, Collective]] = {}
    for rank, tail in tails.items():
        for entry in tail:
            if entry.seq in numbers and (place := (entry.group, entry.seq)) in pending:
                by_place.setdefault(place, {})[rank] = entry
    for (group, seq), issued in sorted(by_place.items(), key=lambda item: item[0][1]):
        operations = {entry.op for rank, entry in issued.items() if rank in eligible}
        if len(operations - {UNKNOWN_CALL}) > 1:
            return group, seq, issued
    return None


def disputed_groups(ranks: Mapping[int, RankView]) -> dict[str, dict[int, tuple[int, ...]]]:
    """Group -> rank -> members, of the groups that ranks know by one name and with other members."""
    by_id: dict[str, dict[int, tuple[int, ...]]] = {}
    for rank, view in ranks.items():
        for group in view.process.groups if view.process is not None else ():
            by_id.setdefault(group.id, {})[rank] = group.members
    return {name: by_rank for name, by_rank in by_id.items() if _differ(by_rank.values())}


def _differ(groups: Iterable[tuple[int, ...]]) -> bool:
    """True for members that are not all the same; most ranks share one tuple of them."""
    return len({*{id(members): members for members in groups}.values()}) > 1


def addresses(ranks: Mapping[int, RankView]) -> dict[str, list[int]]:
    """Store address -> ranks that wait at it, of those now in the rendezvous."""
    waiting = {r: v for r, v in ranks.items() if v.state == "rendezvous" and v.process is not None}
    return grouped({rank: view.master for rank, view in waiting.items() if view.master})
