"""From which call on ranks have not made the same calls, as the Flight Recorder tells. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ...model.clauses import grouped
from ...model.frames import Frame, innermost_user
from ...model.issued import Issued, IssuedCall
from ...model.parting import Call, Met

MOST = 3
"""Places of a group that are told."""


class Apart(msgspec.Struct, frozen=True):
    """The first place of a group from which on ranks have not made the same calls.

    Attributes:
        calls: rank -> what it has issued there.
        told: this place and those after it, the last one included.
    """

    group: str
    seq: int
    calls: Mapping[int, IssuedCall]
    told: tuple[Met, ...]


def apart(issued: Mapping[int, Sequence[Issued]]) -> tuple[Apart, ...]:
    """Where ranks have parted, of each group in which they have.

    Lines may differ at one place, as when rank 0 calls a barrier in a branch of its own: that parts
    nobody while the ranks make each call equally often. Operations may not.

    Args:
        issued: rank -> the newest calls of its groups.
    """
    issued = _from_common_line(issued)
    groups = dict.fromkeys(one.group for found in issued.values() for one in found)
    found = []
    for group in groups:
        of_rank = {
            rank: one for rank, known in sorted(issued.items()) for one in known if one.group == group
        }
        found += [one for one in [_of_group(group, of_rank)] if one is not None]
    return tuple(found)


def _from_common_line(issued: Mapping[int, Sequence[Issued]]) -> Mapping[int, Sequence[Issued]]:
    """The same, from the function on that all ranks have, where they were started in other ways."""
    different = {one.calls for found in issued.values() for one in found if one.calls}
    outermost = {_function(call.stack[-1]) for calls in different for call in calls if call.stack}
    functions = [{_function(one) for call in {*calls} for one in call.stack} for calls in different]
    common = set.intersection(*functions) if functions else set()
    if outermost <= common:
        return issued
    known: dict[tuple[str, tuple[Frame, ...]], IssuedCall] = {}

    def trimmed(call: IssuedCall) -> IssuedCall:
        inside = [n for n, frame in enumerate(call.stack) if _function(frame) in common]
        stack = call.stack[: inside[-1] + 1] if inside else call.stack
        return known.setdefault((call.op, stack), IssuedCall(call.op, stack))

    return {
        rank: [replace(one, calls=tuple(map(trimmed, one.calls))) for one in found]
        for rank, found in issued.items()
    }


def _function(frame: Frame) -> tuple[str, str]:
    return frame.file, frame.function


def _of_group(group: str, of_rank: Mapping[int, Issued]) -> Apart | None:
    alike = grouped({rank: (one.first, one.calls) for rank, one in of_rank.items()})
    classes = [(ranks, of_rank[ranks[0]]) for ranks in alike.values()]
    if len(classes) < 2:
        return None
    differing = list(_differing([one for _, one in classes]))
    start, came_together = _from(differing, [one for _, one in classes])
    if start is None or (came_together and len(_operations(differing[-1][1])) < 2):
        return None
    first = _first_of_run(differing, start)
    told = [
        Met(group, seq, _calls(here, [ranks for ranks, _ in classes]))
        for seq, here in differing
        if seq >= first
    ]
    there = next(here for seq, here in differing if seq == start)
    return Apart(
        group,
        start,
        {rank: there[n] for n, (ranks, _) in enumerate(classes) if n in there for rank in ranks},
        tuple(told if len(told) <= MOST else [*told[: MOST - 1], told[-1]]),
    )


def _differing(classes: Sequence[Issued]) -> Iterator[tuple[int, dict[int, IssuedCall]]]:
    """The places at which not all have made the same call: number of the class -> its call."""
    first = max(one.first for one in classes)
    for seq in range(first, max(one.first + len(one.calls) for one in classes)):
        here = {
            number: one.calls[seq - one.first]
            for number, one in enumerate(classes)
            if seq < one.first + len(one.calls)
        }
        if len({*here.values()}) > 1:
            yield seq, here


def _from(
    differing: Sequence[tuple[int, Mapping[int, IssuedCall]]], classes: Sequence[Issued]
) -> tuple[int | None, bool]:
    """The place from which on some call has not been made equally often by all who make it.

    Returns:
        That place, None where there is none; and whether calls were uneven before, and even again.
    """
    makers = [{*one.calls} for one in classes]
    made = [Counter[IssuedCall]() for _ in classes]
    start, came_together = None, False
    uneven: set[IssuedCall] = set()
    for seq, here in differing:
        for number, call in here.items():
            made[number][call] += 1
        for call in {*here.values(), *uneven}:
            counts = {made[number][call] for number in here if call in makers[number]}
            (uneven.add if len(counts) > 1 else uneven.discard)(call)
        if uneven or len(_operations(here)) > 1:
            start = seq if start is None else start
        elif start is not None:
            start, came_together = None, True
    return start, came_together


def _first_of_run(differing: Sequence[tuple[int, Mapping[int, IssuedCall]]], start: int) -> int:
    """From which place on the ranks have not been in one line, up to the one where they are apart.

    Lines that have met before, and after which the ranks were in one line again, are no difference.
    """
    seqs = {seq for seq, _ in differing}
    harmless = [here for seq, here in differing if seq < start and seq + 1 not in seqs]
    first = start
    for seq, here in reversed(differing):
        if seq == first - 1 and here not in harmless:
            first = seq
    return first


def _operations(here: Mapping[int, IssuedCall]) -> set[str]:
    return {call.op for call in here.values()}


def _calls(here: Mapping[int, IssuedCall], ranks: Sequence[Sequence[int]]) -> tuple[Call, ...]:
    by_call: dict[IssuedCall, list[int]] = {}
    for number, call in here.items():
        by_call.setdefault(call, []).extend(ranks[number])
    known = sorted(((sorted(found), call) for call, found in by_call.items()), key=lambda one: one[0])
    return tuple(Call(tuple(found), call.op, innermost_user(call.stack)) for found, call in known)
