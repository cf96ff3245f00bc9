"""Lanes made fit for a picture: short segments folded, errors left out, collectives matched. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .lanes import LASTING, Lane, Segment


def without_errors(found: Sequence[Lane]) -> tuple[Lane, ...]:
    """The same lanes, of which a failure says no more than that it is one."""
    return tuple(
        replace(
            lane,
            segments=tuple(
                replace(segment, text="ended in failure", label="")
                if segment.kind == "failed"
                else segment
                for segment in lane.segments
            ),
        )
        for lane in found
    )


def folded(found: Sequence[Lane], seconds: float, limit: int) -> tuple[Lane, ...]:
    """The lanes with neighbours that are too short to draw folded into one `moving` segment.

    Args:
        found: the lanes as they are.
        seconds: a segment shorter than this is too short.
        limit: segments that may be left; `seconds` is raised until they are, as far as that helps.
    """
    span = max((lane.segments[-1].end for lane in found if lane.segments), default=0.0)
    while True:
        result = tuple(replace(lane, segments=_fold(lane.segments, seconds)) for lane in found)
        if seconds > span or sum(len(lane.segments) for lane in result) <= limit:
            return result
        seconds *= 1.5


def _fold(segments: Sequence[Segment], seconds: float) -> tuple[Segment, ...]:
    """Fold each run of short segments that touch; the newest segment stays as it is."""
    runs: list[list[Segment]] = []
    for number, segment in enumerate(segments):
        if runs and number < len(segments) - 1 and _folds(runs[-1][-1], segment, seconds):
            runs[-1].append(segment)
        else:
            runs.append([segment])
    return tuple(run[0] if len(run) == 1 else _moving(run) for run in runs)


def _folds(last: Segment, segment: Segment, seconds: float) -> bool:
    return last.end == segment.start and all(
        part.end - part.start < seconds and part.kind not in LASTING for part in (last, segment)
    )


def _moving(run: Sequence[Segment]) -> Segment:
    names = list(dict.fromkeys(part.op or part.label for part in run))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    text = f"in short turns {', '.join(names[:3])}{more}"
    numbers = [part.seq for part in run if part.seq is not None]
    if numbers:
        text += f", collectives #{min(numbers)} to #{max(numbers)}"
    return Segment("moving", text, "in turns", run[0].start, run[-1].end, run[-1].where)


def meetings(found: Sequence[Lane]) -> dict[tuple[str, int], list[tuple[int, Segment]]]:
    """Collectives that more than one lane is seen in: (group, number) -> (lane's index, segment)."""
    met: dict[tuple[str, int], list[tuple[int, Segment]]] = {}
    for index, lane in enumerate(found):
        for segment in lane.segments:
            if segment.kind == "collective" and segment.seq is not None:
                met.setdefault((segment.group or "default", segment.seq), []).append((index, segment))
    return {place: parts for place, parts in met.items() if len(parts) > 1}
