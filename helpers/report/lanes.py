"""Snapshots -> lanes: what each rank, and each DataLoader worker, did from when to when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..model.facts import ChildView, ProcessView, RankView, Snapshot, State
from ..model.frames import Frame
from ..model.waits import AtRendezvous, InCollective
from ..model.wording import call, doing, ending, signal_name, wait_label, where_of

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

FLUID: frozenset[Kind] = frozenset({"starting", "importing", "rendezvous", "running", "idle"})
"""Kinds that stay one segment while the line changes."""

LASTING: frozenset[Kind] = frozenset({"stopped", "failed", "ended", "missing", "unseen"})
"""Kinds that are never folded into `moving`."""

WORKERS_UP_TO = 16
"""Ranks above which the lanes of workers are left out."""


@dataclass(frozen=True)
class Segment:
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


@dataclass(frozen=True)
class Lane:
    """One rank, or one child of a rank, over time; segments in order, with gaps where it was not there.

    Attributes:
        rank: its global rank, for a child that of its parent; None where it is unknown.
        name: `rank 0`, `worker 1`, or `also rank 0` for a child that has joined as a rank.
        child: True for a child.
    """

    rank: int | None
    name: str
    child: bool
    segments: tuple[Segment, ...]


@dataclass(frozen=True, order=True)
class _Key:
    """Identifies a lane over time, in the order of the picture."""

    unknown: bool
    number: int
    child: int = -1


@dataclass(frozen=True)
class _Sight:
    """A rank or child in one snapshot."""

    key: _Key
    name: str
    state: State
    process: ProcessView | None


def lanes(snapshots: Sequence[Snapshot]) -> tuple[Lane, ...]:
    """Every rank in the order of their numbers, unknown ones last, each followed by its workers.

    Children are left out when there are more ranks than `WORKERS_UP_TO`, when they never had a task, and
    when they are neither a DataLoader worker nor a child that has joined as a rank.
    """
    numbers = {
        view.process.pid: view.rank
        for snapshot in snapshots
        for view in snapshot.ranks
        if view.process is not None and view.rank is not None
    }
    seen: dict[_Key, list[Segment]] = {}
    names: dict[_Key, str] = {}
    before: float | None = None
    for snapshot in snapshots:
        # A later sight of a key wins: a worker's successor comes after the worker that has ended.
        for sight in {sight.key: sight for sight in _sights(snapshot, numbers)}.values():
            names[sight.key] = sight.name
            _extend(seen.setdefault(sight.key, []), sight, snapshot.time, before)
        before = snapshot.time
    with_children = len({key for key in seen if key.child < 0}) <= WORKERS_UP_TO
    return tuple(
        Lane(None if key.unknown else key.number, names[key], key.child >= 0, tuple(segments))
        for key, segments in sorted(seen.items(), key=lambda item: item[0])
        if key.child < 0 or (with_children and _worked(segments))
    )


def _worked(segments: Iterable[Segment]) -> bool:
    return any(segment.kind not in ("idle", "starting", "importing", "ended") for segment in segments)


def _sights(snapshot: Snapshot, numbers: dict[int, int]) -> Iterator[_Sight]:
    for view in snapshot.ranks:
        pid = view.process.pid if view.process else 0
        number = numbers.get(pid, view.rank) if view.rank is None else view.rank
        key = _Key(number is None, pid if number is None else number)
        name = "rank ?" if number is None else f"rank {number}"
        yield _Sight(key, name, _state(view), view.process)
        for child in sorted(view.children, key=lambda child: child.process.alive):
            if child.joined_as_rank is not None or child.worker_id is not None:
                yield _child(key, child)


def _state(view: RankView) -> State:
    return view.process.state if view.process else view.state


def _child(parent: _Key, child: ChildView) -> _Sight:
    process = child.process
    number = process.pid if child.worker_id is None else child.worker_id
    name = f"worker {number}"
    if child.joined_as_rank is not None:
        name = f"also rank {child.joined_as_rank}"
    return _Sight(replace(parent, child=number), name, process.state, process)


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
        said = ending(process)
        text = f"ended with {said}" if said else "ended"
        return Segment("failed" if failed else "ended", text, _short_end(process), start, now, where)
    kind = _kind(process, child=sight.key.child >= 0)
    if kind not in ("collective", "waiting", "rendezvous"):
        text = kind if kind in ("starting", "running", "idle") else doing(process)
        return Segment(kind, text, "C call" if kind == "held" else kind, start, now, where)
    wait = process.blocking[0]
    text = doing(replace(process, asleep=None) if process.asleep else process)
    if kind == "collective" and isinstance(wait, InCollective):
        return Segment(kind, text, call(wait), start, now, where, wait.op, wait.group, wait.seq)
    return Segment(kind, text, wait_label(wait), start, now, where)


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


def _short_end(process: ProcessView) -> str:
    """`DistNetworkError`, `SIGKILL`, `exit code 3`: what ended it, in a word or two."""
    if process.error:
        return process.error.type
    if process.signal is not None:
        return signal_name(process.signal)
    return f"exit code {process.exit_code}" if process.exit_code else ""


def without_errors(found: Sequence[Lane]) -> tuple[Lane, ...]:
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
