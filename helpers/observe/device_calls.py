"""What holds ranks that wait for their devices: the first collective that not all members have issued.

A device tells nothing of its own. A backend may have no recorder, so the calls count that each rank has
made through Python: those of one number in one group belong together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..model.facts import Collective, ProcessView, RankView
from ..model.waits import UNKNOWN_CALL, InCollective, OnDevice, Wait

Unmet = Mapping[str, int]
"""torch's own name of a group -> number of the first collective in it that cannot be done yet."""


def with_calls(views: Sequence[RankView]) -> tuple[RankView, ...]:
    """The ranks, those that wait for their devices with the collectives that they are held by."""
    if not any(_waits(view.process) for view in views):
        return tuple(views)
    unmet = _unmet([view.process for view in views if view.process is not None])
    return tuple(
        view if view.process is None else replace(view, process=_held(view.process, unmet))
        for view in views
    )


def _waits(process: ProcessView | None) -> bool:
    return process is not None and any(isinstance(wait, OnDevice) for wait in process.waits)


def _unmet(processes: Sequence[ProcessView]) -> Unmet:
    issued: dict[str, list[dict[int, str]]] = {}
    for process in processes:
        for group in process.groups:
            calls = {entry.seq: entry.op for entry in process.collectives if entry.group == group.name}
            issued.setdefault(group.id, []).append(calls)
    found = {group: _first_unmet(calls) for group, calls in issued.items()}
    return {group: number for group, number in found.items() if number is not None}


def _first_unmet(members: Sequence[Mapping[int, str]]) -> int | None:
    """The first number at which members have issued different calls, or some have issued none yet."""
    newest = [max(calls, default=0) for calls in members]
    common = min(newest, default=0)
    known = [number for calls in members for number in calls if number <= common]
    for number in sorted(set(known)):
        operations = {calls[number] for calls in members if number in calls} - {UNKNOWN_CALL}
        if len(operations) > 1:
            return number
    return common + 1 if common < max(newest, default=0) else None


def _held(process: ProcessView, unmet: Unmet) -> ProcessView:
    """The process with what is pending in its groups."""
    first = {group.name: unmet[group.id] for group in process.groups if group.id in unmet}
    members = {group.name: group.members for group in process.groups}
    collectives = tuple(
        replace(entry, done=entry.done and entry.seq < first.get(entry.group, entry.seq + 1))
        for entry in process.collectives
    )
    device = next((wait for wait in process.waits if isinstance(wait, OnDevice)), None)
    pending = [entry for entry in collectives if first.get(entry.group) == entry.seq]
    if device is None or not pending:
        return replace(process, collectives=collectives)
    held = [_pending(entry, members[entry.group], device) for entry in pending]
    behind = replace(device, blocking=False, op=pending[0].op)
    others = [behind if wait is device else wait for wait in process.waits]
    return replace(process, collectives=collectives, waits=(*held, *others))


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
        enqueued=True,
    )
