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


class Desync(msgspec.Struct, frozen=True):
    """The first place of a group from which on ranks have not made the same calls.

    Attributes:
        calls: rank -> what it has issued there.
        places: this place and those after it, the last one included.
    """

    group: str
    seq: int
    calls: Mapping[int, IssuedCall]
    places: tuple[Met, ...]


def find_desyncs(issued: Mapping[int, Sequence[Issued]]) -> tuple[Desync, ...]:
    """Where ranks have parted, of each group in which they have.

    Lines may differ at one place, as when rank 0 calls a barrier in a branch of its own: that parts
    nobody while the ranks make each call equally often. Operations may not.

    Args:
        issued: rank -> the newest calls of its groups.
    """
    issued = _from_common_line(issued)
    groups = dict.fromkeys(history.group for histories in issued.values() for history in histories)
    desyncs = []
    for group in groups:
        of_rank = {
            rank: history
            for rank, histories in sorted(issued.items())
            for history in histories
            if history.group == group
        }
        desyncs.append(_of_group(group, of_rank))
    return tuple(desync for desync in desyncs if desync is not None)


def _from_common_line(issued: Mapping[int, Sequence[Issued]]) -> Mapping[int, Sequence[Issued]]:
    """The same, from the function on that all ranks have, where they were started in other ways."""
    different = {
        history.calls for histories in issued.values() for history in histories if history.calls
    }
    outermost = {_function(call.stack[-1]) for calls in different for call in calls if call.stack}
    functions = [{_function(frame) for call in {*calls} for frame in call.stack} for calls in different]
    common = set.intersection(*functions) if functions else set()
    if outermost <= common:
        return issued
    by_stack: dict[tuple[str, tuple[Frame, ...]], IssuedCall] = {}

    def trimmed(call: IssuedCall) -> IssuedCall:
        inside = [n for n, frame in enumerate(call.stack) if _function(frame) in common]
        stack = call.stack[: inside[-1] + 1] if inside else call.stack
        return by_stack.setdefault((call.op, stack), IssuedCall(call.op, stack))

    return {
        rank: [replace(history, calls=tuple(map(trimmed, history.calls))) for history in histories]
        for rank, histories in issued.items()
    }


def _function(frame: Frame) -> tuple[str, str]:
    return frame.file, frame.function


def _of_group(group: str, of_rank: Mapping[int, Issued]) -> Desync | None:
    alike = grouped({rank: (history.first, history.calls) for rank, history in of_rank.items()})
    classes = [(ranks, of_rank[ranks[0]]) for ranks in alike.values()]
    if len(classes) < 2:
        return None
    differing = list(_differing([history for _, history in classes]))
    start, came_together = _from(differing, [history for _, history in classes])
    if start is None or (came_together and len(_operations(differing[-1][1])) < 2):
        return None
    first = _first_of_run(differing, start)
    places = [
        Met(group, seq, _calls(calls, [ranks for ranks, _ in classes]))
        for seq, calls in differing
        if seq >= first
    ]
    start_calls = next(calls for seq, calls in differing if seq == start)
    return Desync(
        group,
        start,
        {
            rank: start_calls[n]
            for n, (ranks, _) in enumerate(classes)
            if n in start_calls
            for rank in ranks
        },
        tuple(places if len(places) <= MOST else [*places[: MOST - 1], places[-1]]),
    )


def _differing(classes: Sequence[Issued]) -> Iterator[tuple[int, dict[int, IssuedCall]]]:
    """The places at which not all have made the same call: number of the class -> its call."""
    first = max(history.first for history in classes)
    for seq in range(first, max(history.first + len(history.calls) for history in classes)):
        calls = {
            number: history.calls[seq - history.first]
            for number, history in enumerate(classes)
            if seq < history.first + len(history.calls)
        }
        if len({*calls.values()}) > 1:
            yield seq, calls


def _from(
    differing: Sequence[tuple[int, Mapping[int, IssuedCall]]], classes: Sequence[Issued]
) -> tuple[int | None, bool]:
    """The place from which on some call has not been made equally often by all who make it.

    Returns:
        That place, None where there is none; and whether calls were uneven before, and even again.
    """
    makers = [{*history.calls} for history in classes]
    tallies = [Counter[IssuedCall]() for _ in classes]
    start, came_together = None, False
    uneven: set[IssuedCall] = set()
    for seq, calls in differing:
        for number, call in calls.items():
            tallies[number][call] += 1
        for call in {*calls.values(), *uneven}:
            counts = {tallies[number][call] for number in calls if call in makers[number]}
            (uneven.add if len(counts) > 1 else uneven.discard)(call)
        if uneven or len(_operations(calls)) > 1:
            start = seq if start is None else start
        elif start is not None:
            start, came_together = None, True
    return start, came_together


def _first_of_run(differing: Sequence[tuple[int, Mapping[int, IssuedCall]]], start: int) -> int:
    """From which place on the ranks have not been in one line, up to the one where they are apart.

    Lines that have met before, and after which the ranks were in one line again, are no difference.
    """
    seqs = {seq for seq, _ in differing}
    harmless = [calls for seq, calls in differing if seq < start and seq + 1 not in seqs]
    first = start
    for seq, calls in reversed(differing):
        if seq == first - 1 and calls not in harmless:
            first = seq
    return first


def _operations(calls: Mapping[int, IssuedCall]) -> set[str]:
    return {call.op for call in calls.values()}


def _calls(calls: Mapping[int, IssuedCall], ranks: Sequence[Sequence[int]]) -> tuple[Call, ...]:
    by_call: dict[IssuedCall, list[int]] = {}
    for number, call in calls.items():
        by_call.setdefault(call, []).extend(ranks[number])
    by_ranks = sorted(
        ((sorted(callers), call) for call, callers in by_call.items()), key=lambda entry: entry[0]
    )
    return tuple(Call(tuple(callers), call.op, innermost_user(call.stack)) for callers, call in by_ranks)
