"""What holds ranks that wait for their devices: the first collective that not all members have come to.

A device tells nothing of its own. A backend may have no recorder, so the calls count that each rank has
made through Python: those of one number in one group belong together, and a device carries out what its
rank has issued in that order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ..model.facts import Collective, ProcessView, RankView
from ..model.waits import UNKNOWN_CALL, InCollective, OnDevice, Wait


def with_calls(views: Sequence[RankView]) -> tuple[RankView, ...]:
    """The ranks, those that wait for their devices with the collectives that they are held by."""
    if not any(_waits(view.process) for view in views):
        return tuple(views)
    streams = {id(view): _Stream(view.process) for view in views if view.process is not None}
    first = _first_unmet([*streams.values()])
    return tuple(
        replace(view, process=streams[id(view)].with_pending(first)) if id(view) in streams else view
        for view in views
    )


def _waits(process: ProcessView | None) -> bool:
    return process is not None and any(isinstance(wait, OnDevice) for wait in process.waits)


Unmet = dict[str, int]
"""torch's own name of a group -> number of the first collective in it that cannot be done yet."""


class _Stream:
    """What a rank has issued to its device.

    Attributes:
        limits: torch's own name of a group -> number from which on the device has not come to what was
            issued in it, since something is before that.
    """

    def __init__(self, process: ProcessView) -> None:
        self.process = process
        self.limits: Unmet = {}
        self.groups = {group.name: group for group in process.groups}
        logged = [entry for entry in process.collectives if entry.logged and entry.group in self.groups]
        self.issued = sorted(logged, key=lambda entry: -1 if entry.turn is None else entry.turn)

    def reached(self) -> Iterator[tuple[str, Collective]]:
        """What the device has come to, or may have, with torch's own name of its group."""
        for entry in self.issued:
            group = self.groups[entry.group].id
            if entry.seq < self.limits.get(group, math.inf):
                yield group, entry

    def stops(self, first: Unmet) -> bool:
        """Leave out what is behind the first collective that holds the device; True if there is more.

        What was issued at an unknown turn may be before it, and holds nothing of another group.
        """
        blocked, limits = False, dict(self.limits)
        for group, entry in self.reached():
            if entry.turn is None:
                continue
            if blocked:
                limits[group] = min(entry.seq, limits.get(group, entry.seq))
            blocked = blocked or _holds(entry, first.get(group))
        changed, self.limits = limits != self.limits, limits
        return changed

    def with_pending(self, first: Unmet) -> ProcessView:
        """The process with what is pending in its groups."""
        if not self.issued:
            return self.process
        reached = [
            (group, replace(entry, done=entry.done and entry.seq < first.get(group, math.inf)))
            for group, entry in self.reached()
        ]
        process = replace(self.process, collectives=tuple(entry for _, entry in reached))
        device = next((wait for wait in process.waits if isinstance(wait, OnDevice)), None)
        holding = {group for group, entry in reached if _holds(entry, first.get(group))}
        pending = [entry for group, entry in reached if group in holding and entry.seq == first[group]]
        if device is None or not pending:
            return process
        collectives = [_pending(entry, self.groups[entry.group].members, device) for entry in pending]
        behind = replace(device, blocking=False, op=pending[0].op)
        waits = [behind if wait is device else wait for wait in process.waits]
        return replace(process, waits=(*collectives, *waits))


def _holds(entry: Collective, unmet: int | None) -> bool:
    """True for a call behind which a device stops, in a group that gets no further than a number."""
    return unmet is not None and entry.seq >= unmet and not entry.handle


def _first_unmet(streams: Sequence[_Stream]) -> Unmet:
    """Where each group stops: a device that stops there comes to nothing of another group behind it."""
    while True:
        issued: dict[str, list[dict[int, str]]] = {}
        for stream in streams:
            calls: dict[str, dict[int, str]] = {group.id: {} for group in stream.groups.values()}
            for group, entry in stream.reached():
                calls[group][entry.seq] = entry.op
            for group, numbered in calls.items():
                issued.setdefault(group, []).append(numbered)
        stops = {group: _unmet(members) for group, members in issued.items()}
        first = {group: number for group, number in stops.items() if number is not None}
        stopped = [stream.stops(first) for stream in streams]
        if not any(stopped):
            return first


def _unmet(members: Sequence[dict[int, str]]) -> int | None:
    """The first number at which members have issued different calls, or some have issued none yet."""
    newest = [max(calls, default=0) for calls in members]
    common = min(newest, default=0)
    numbers = [number for calls in members for number in calls if number <= common]
    for number in sorted(set(numbers)):
        operations = {calls[number] for calls in members if number in calls} - {UNKNOWN_CALL}
        if len(operations) > 1:
            return number
    return common + 1 if common < max(newest, default=0) else None


def _pending(entry: Collective, members: tuple[int, ...], device: OnDevice) -> Wait:
    return InCollective(
        op=entry.op,
        group=entry.group,
        members=members,
        seq=entry.seq,
        thread=device.thread,
        where=device.where,
        within=device.within,
        traced=device.traced,
        on_device=True,
        enqueued=True,
    )
