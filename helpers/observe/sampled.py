"""What a rank did at the newest ticks, from what its beacon has noted or py-spy has read. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..beacon.record import FrameEntry
from ..beacon.record import Sample as Noted
from ..beacon.ticks import moment
from ..model.facts import ChildView
from ..model.frames import Frame
from ..model.samples import Sample
from .source import frame_of


def of_beacon(
    noted: Iterable[tuple[Noted, FrameEntry | None]], cwd: str, start: float, children: Sequence[ChildView]
) -> tuple[Sample, ...]:
    """What the beacon of a rank has noted.

    Args:
        cwd: the job's folder; start: monotonic time at which it was started.
        children: of the rank: while it waits for one that loads data, the line is that one's.
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
            ran=sample["ran"],
            wanted=sample["wanted"],
            used=sample["used"],
            collections=sample["collections"],
        )
        for sample, place in noted
    )


def _where(place: FrameEntry | None, cwd: str, loads: Frame | None) -> Frame | None:
    return loads or (frame_of(place, cwd) if place is not None else None)


def _loading(children: Sequence[ChildView]) -> Frame | None:
    """The line of a child that loads data, of those at work."""
    busy = (
        child.process
        for child in children
        if child.process.kind == "dataloader-worker" and child.process.alive and not child.process.waits_for_task
    )
    return next((process.where for process in busy if process.where is not None), None)
