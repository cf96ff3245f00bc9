"""What a rank did at the newest ticks, from what its beacon has noted or py-spy has read. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..beacon.record import FrameEntry, Record, Thread
from ..beacon.record import Sample as Noted
from ..beacon.samples import communicates, doing, for_interpreter, within
from ..beacon.ticks import moment
from ..model.facts import ChildView
from ..model.frames import Frame
from ..model.samples import Sample
from ..model.waits import ForRanks, Wait
from .groups import on_device
from .source import frame_of


def of_beacon(
    noted: Iterable[tuple[Noted, FrameEntry | None]],
    children: Sequence[ChildView],
    cwd: str,
    start: float,
) -> tuple[Sample, ...]:
    """What the beacon of a rank has noted.

    Args:
        children: of the rank: while it waits for one that loads data, the line is that one's.
        cwd: the job's folder; start: monotonic time at which it was started.
    """
    loads = _loading(children)
    return tuple(
        Sample(
            tick=sample["tick"],
            due=sample["due"],
            at=moment(sample["tick"]) - start,
            doing=sample["doing"],
            where=_where(place, cwd, loads if sample["doing"] == "child" else None),
            within=sample["within"],
            call=sample["call"],
            issued=sample["issued"],
            ran=sample["ran"],
            wanted=sample["wanted"],
            used=sample["used"],
            collections=sample["collections"],
            load=sample.get("load", 0.0),
        )
        for sample, place in noted
    )


def from_outside(
    record: Record, waits: Sequence[Wait], children: Sequence[ChildView], cwd: str, start: float
) -> tuple[Sample, ...]:
    """What py-spy has read of a rank.

    Its frames and its system call are not of the same moment: whoever is in a call to other ranks waits.

    Args:
        waits: what the process waits for.
    """
    thread = _users(record)
    if thread is None or "asked" not in record:
        return ()
    frames, call = thread["frames"], thread["native"]
    if call is not None and for_interpreter(call, record["read"]):
        call = None
    for_ranks = communicates(frames) or any(isinstance(w, ForRanks) and w.blocking for w in waits)
    done = "waits" if for_ranks else doing(frames, call, pending=not waits, on_device=on_device(record))
    ran, wanted = thread.get("schedule", (0.0, 0.0))
    tick = int(record["asked"] * 1e3)
    place = next((frame for frame in frames if frame[3]), None)
    sample = Sample(
        tick=tick,
        due=tick,
        at=record["asked"] - start,
        doing=done,
        where=_where(place, cwd, _loading(children) if done == "child" else None),
        within=within(frames),
        call=call["call"] if call is not None else "",
        ran=ran,
        wanted=wanted,
    )
    return (sample,)


def _users(record: Record) -> Thread | None:
    """The main thread, or else the first one, that is somewhere in the user's code."""
    users = [thread for thread in record["threads"] if any(frame[3] for frame in thread["frames"])]
    return next((thread for thread in users if thread["main"]), users[0] if users else None)


def _where(place: FrameEntry | None, cwd: str, loads: Frame | None) -> Frame | None:
    return loads or (frame_of(place, cwd) if place is not None else None)


def _loading(children: Sequence[ChildView]) -> Frame | None:
    """The line of a child that loads data, of those at work."""
    busy = (
        child.process
        for child in children
        if child.process.kind == "dataloader-worker"
        and child.process.alive
        and not child.process.waits_for_task
    )
    return next((process.where for process in busy if process.where is not None), None)
