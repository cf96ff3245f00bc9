"""Snapshots -> lanes: what ranks, and their DataLoader workers, did from when to when.

Where there are few ranks each has a lane; of many, those that are alike at the end share one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from ..model.facts import ChildView, ProcessView, RankView, Snapshot, State
from ..model.frames import Frame
from ..model.waits import AtRendezvous, InCollective
from ..model.wording import doing, ending, label, place_in, rank_name, where_of
from .alike import Alike, one_by_one, together

Kind = Literal[
    "starting",
    "importing",
    "rendezvous",
    "running",
    "moving",
    "collective",
    "waiting",
    "asleep",
    "held",
    "stopped",
    "failed",
    "ended",
    "missing",
    "unseen",
    "idle",
]
"""`moving` is several states, each too short to draw; `held` for a C call that holds the
interpreter lock; `idle` for a worker without a task."""

WORDS: dict[Kind, str] = {
    "starting": "starting",
    "importing": "importing",
    "rendezvous": "rendezvous",
    "running": "running",
    "moving": "several in short turns",
    "collective": "in a collective",
    "waiting": "waiting for something else",
    "asleep": "asleep",
    "held": "in a C call, interpreter locked",
    "stopped": "stopped by a signal",
    "failed": "ended in failure",
    "ended": "ended",
    "missing": "never started",
    "unseen": "out of sight",
    "idle": "worker without a task",
}
"""In the order of the legend."""

FLUID: frozenset[Kind] = frozenset({"starting", "importing", "rendezvous", "running", "idle"})
"""Kinds that stay one segment while the line changes."""

LASTING: frozenset[Kind] = frozenset({"stopped", "failed", "ended", "missing", "unseen"})
"""Kinds that are never folded into `moving`."""


class Segment(msgspec.Struct, frozen=True):
    """A stretch of a lane in which nothing changes.

    Attributes:
        text: what goes on, as a phrase: `in barrier #7 of the default group`.
        label: the same in a word or two, for the picture.
        start, end: seconds since the start of the command.
        where: the user's line, the newest one of a segment of a kind in `FLUID`.
        op, group, seq: of the collective that it is blocked in.
    """

    kind: Kind
    text: str
    label: str
    start: float
    end: float
    where: Frame | None = None
    op: str | None = None
    group: str | None = None
    seq: int | None = None


class Lane(msgspec.Struct, frozen=True):
    """One rank, or ranks that are alike at the end, or one child of a rank, over time.

    Attributes:
        ranks: global ranks, of a child that of its parent; None where one is unknown.
        name: `rank 0`, `16,383 ranks`, `worker 1`; `also rank 0` for a child that has joined as a rank.
        heading: said above it where the lane before it has another one, as of `Alike`.
        child: True for a child.
        segments: in order, with gaps where it was not there; of several ranks those of the first, but
            for the newest, which holds for all of them.
    """

    ranks: tuple[int | None, ...]
    name: str
    heading: str
    child: bool
    segments: tuple[Segment, ...]


class _Sight(msgspec.Struct, frozen=True):
    """A rank or child in one snapshot.

    Attributes:
        child: a number for each child of a rank; None for the rank itself.
    """

    child: int | None
    name: str
    state: State
    process: ProcessView | None


def lanes(
    snapshots: Sequence[Snapshot], culprits: Collection[int] = (), *, separate: bool = False
) -> tuple[Lane, ...]:
    """The lanes node by node, in the order of the ranks, unknown ones last.

    Each rank that has a lane of its own is followed by its children. They are left out when ranks share
    a lane, when they never had a task, and when they are neither a DataLoader worker nor a child that
    has joined as a rank.

    Args:
        culprits: ranks that share no lane with others.
        separate: True gives each rank a lane of its own, however many there are.
    """
    numbers = {
        view.process.pid: view.rank
        for snapshot in snapshots
        for view in snapshot.ranks
        if view.process is not None and view.rank is not None
    }
    looks = [_look(snapshot, numbers) for snapshot in snapshots]
    newest: dict[int, RankView] = {}
    for look in looks:
        newest |= look
    keys = {id(view): key for key, view in newest.items()}
    views = [*newest.values()]
    most = max(len(views), 2)
    rows = together(views, _alone, most=most) if separate else one_by_one(views, _likeness, culprits)
    crowded = any(row.views[1:] for row in rows if row.views[0].process)
    times = [snapshot.time for snapshot in snapshots]
    entries = []
    for row in rows:
        key = keys[id(row.views[0])]
        tracks = _tracks([look.get(key) for look in looks], times, children=not crowded)
        name, segments = tracks.pop(None)
        entries.append(Lane(row.ranks, row.name, row.heading, False, _held_in_common(row, segments)))
        for _, (name, segments) in sorted(tracks.items(), key=lambda item: item[0] or 0):
            if _worked(segments):
                entries.append(Lane(row.ranks, name, row.heading, True, tuple(segments)))
    return tuple(entries)


def _look(snapshot: Snapshot, numbers: dict[int, int]) -> dict[int, RankView]:
    """The ranks of a snapshot, with numbers that have become known later.

    Each has a key that is the same over time: its number, or a negative one while that is unknown.
    """
    views = {}
    for view in snapshot.ranks:
        pid = view.process.pid if view.process else 0
        if view.rank is None and pid in numbers:
            view = replace(view, rank=numbers[pid])
        views[~pid if view.rank is None else view.rank] = view
    return views


def _tracks(
    views: Sequence[RankView | None], times: Sequence[float], *, children: bool
) -> dict[int | None, tuple[str, list[Segment]]]:
    """Names and segments of a rank, and of its children, in snapshots taken at `times`."""
    tracks: dict[int | None, tuple[str, list[Segment]]] = {}
    for view, now, before in zip(views, times, (None, *times), strict=False):
        sights = _sights(view, children=children) if view else ()
        # A later sight of a child wins: a worker's successor comes after the worker that has ended.
        for sight in {sight.child: sight for sight in sights}.values():
            _, segments = tracks.get(sight.child, ("", []))
            _extend(segments, sight, now, before)
            tracks[sight.child] = sight.name, segments
    return tracks


def _likeness(view: RankView) -> tuple[str, str, str, str]:
    """What its lane shows at the end."""
    newest = _segment(_sight(view), 0.0, 0.0)
    at = "" if newest.kind in FLUID else place_in(newest.where)
    return newest.kind, newest.label, newest.text, at


def _alone(view: RankView) -> tuple[int]:
    """Like no other."""
    return (id(view),)


def _held_in_common(row: Alike, segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """The segments of the first rank of a row; the newest says what all of its ranks have in common."""
    if row.alone:
        return tuple(segments)
    parts = [_segment(_sight(view), 0.0, 0.0) for view in row.views]
    newest = segments[-1]
    if len({part.text for part in parts}) > 1:
        subject = _subject(parts)
        newest = replace(newest, text=subject, label=subject, op=None, group=None, seq=None)
    places = {place_in(part.where) for part in parts}
    if len(places) > 1:
        at = f" at {len(places):,} lines"
        newest = replace(newest, text=newest.text + at, label=newest.label + at, where=None)
    return (*segments[:-1], newest)


def _subject(parts: Sequence[Segment]) -> str:
    """The least that segments which differ have in common, in words."""
    kinds, labels = {part.kind for part in parts}, {part.label for part in parts}
    if len(labels) == 1 and parts[0].label:
        return parts[0].label
    return WORDS[parts[0].kind] if len(kinds) == 1 else f"in {len(kinds)} different states"


def _worked(segments: Iterable[Segment]) -> bool:
    return any(segment.kind not in ("idle", "starting", "importing", "ended") for segment in segments)


def _sights(view: RankView, *, children: bool) -> Iterator[_Sight]:
    """A rank, and its children."""
    yield _sight(view)
    for child in sorted(view.children, key=lambda child: child.process.alive) if children else ():
        if child.joined_as_rank is not None or child.worker_id is not None:
            yield _child(child)


def _sight(view: RankView) -> _Sight:
    state = view.process.state if view.process else view.state
    return _Sight(None, rank_name(view), state, view.process)


def _child(child: ChildView) -> _Sight:
    process = child.process
    number = process.pid if child.worker_id is None else child.worker_id
    name = f"worker {number}"
    if child.joined_as_rank is not None:
        name = f"also rank {child.joined_as_rank}"
    return _Sight(number, name, process.state, process)


def _extend(segments: list[Segment], sight: _Sight, now: float, before: float | None) -> None:
    """Add what is seen at `now` to a lane; the lane was last looked at `before`."""
    if not segments:
        segments.append(_segment(sight, _began(sight.process, now), now))
        return
    last = segments[-1]
    start = max(_began(sight.process, now), last.end)
    newest = _segment(sight, last.start, now)
    if last.end != before:
        segments.append(replace(newest, start=start))
    elif _goes_on(last, newest):
        segments[-1] = newest
    else:
        segments[-1:] = [replace(last, end=start), replace(newest, start=start)]


def _goes_on(last: Segment, newest: Segment) -> bool:
    """True when two looks saw the same; a number that becomes known later is not a change."""
    if last.kind != newest.kind:
        return False
    if last.kind in FLUID:
        return True
    if last.kind == "collective" and last.seq is None:
        return (last.op, last.group, last.where) == (newest.op, newest.group, newest.where)
    return (last.text, last.where) == (newest.text, newest.where)


def _began(process: ProcessView | None, now: float) -> float:
    """When the state that is seen at `now` began, as far as the process tells."""
    if process is None:
        return now
    if process.ended is not None:
        return min(process.ended, now)
    if process.state in ("starting", "importing"):
        return min(process.started, now)
    return min(max(now - process.still, process.started), now)


def _segment(sight: _Sight, start: float, now: float) -> Segment:
    """What a sight shows, from `start` until `now`."""
    process = sight.process
    if process is None:
        if sight.state == "unseen":
            return Segment("unseen", "out of sight", "?", start, now)
        return Segment("missing", "never started here", "missing", start, now)
    where = where_of(process)
    if not process.alive:
        failed = bool(process.exit_code or process.signal or process.error)
        reason = ending(process)
        text = f"ended with {reason}" if reason else "ended"
        return Segment("failed" if failed else "ended", text, label(process), start, now, where)
    kind = _kind(process, child=sight.child is not None)
    if kind not in ("collective", "waiting", "rendezvous"):
        text = kind if kind in ("starting", "running", "idle") else doing(process)
        return Segment(kind, text, "C call" if kind == "held" else kind, start, now, where)
    wait = process.blocking[0]
    text = doing(replace(process, asleep=None) if process.asleep else process)
    if kind == "collective" and isinstance(wait, InCollective):
        return Segment(kind, text, label(process), start, now, where, wait.op, wait.group, wait.seq)
    return Segment(kind, text, label(process), start, now, where)


def _kind(process: ProcessView, *, child: bool) -> Kind:
    """The kind of segment of a live process."""
    if process.state == "stopped":
        return "stopped"
    if process.gil_held:
        return "held"
    waits = process.blocking
    if any(isinstance(wait, AtRendezvous) for wait in waits):
        return "rendezvous"
    if waits and not (child and process.where is None):
        return "collective" if isinstance(waits[0], InCollective) else "waiting"
    if process.asleep:
        return "asleep"
    if process.state in ("starting", "importing"):
        return "importing" if process.state == "importing" else "starting"
    return "idle" if child and process.where is None else "running"


def without_errors(lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    """The same lanes; a failure is shown as a failure, without its name."""
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
        for lane in lanes
    )


def folded(lanes: Sequence[Lane], seconds: float, limit: int) -> tuple[Lane, ...]:
    """The lanes with neighbours that are too short to draw folded into one `moving` segment.

    Args:
        lanes: the lanes as they are.
        seconds: a segment shorter than this is too short.
        limit: segments that may be left; `seconds` is raised until they are, as far as that helps.
    """
    span = max((lane.segments[-1].end for lane in lanes if lane.segments), default=0.0)
    while True:
        result = tuple(replace(lane, segments=_fold(lane.segments, seconds)) for lane in lanes)
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


def meetings(lanes: Sequence[Lane]) -> dict[tuple[str, int], list[tuple[int, Segment]]]:
    """Collectives that more than one lane is seen in: (group, number) -> (lane's index, segment)."""
    met: dict[tuple[str, int], list[tuple[int, Segment]]] = {}
    for index, lane in enumerate(lanes):
        for segment in lane.segments:
            if segment.kind == "collective" and segment.seq is not None:
                met.setdefault((segment.group or "default", segment.seq), []).append((index, segment))
    return {place: parts for place, parts in met.items() if len(parts) > 1}
