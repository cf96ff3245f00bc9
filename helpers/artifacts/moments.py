"""The last moments of a recorded job, and how they get from the process that reads them to another.

A replay takes in every look, but only the moments that are asked for become snapshots.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ..model import part as model
from ..model.facts import Snapshot
from ..model.issued import IssuedCall
from ..model.part import Part
from ..observe.look import Look
from ..observe.observer import Observer
from ..observe.pacing import Pacing, RankSamples
from ..observe.recording import RecordingError, Stream

FACTS = model.__name__.rpartition(".")[0]
"""The package that holds every fact."""

REBUILD = ("msgspec._utils", "rebuild")
"""What msgspec 0.22 unpickles a struct with keyword-only fields by: it calls the class of the struct,
which is looked up like any other."""

LARGE = 64
"""Members from which on a group is held only once, however many ranks name them."""


def moments(path: Path) -> Part:
    """What a recording shows of a job at last, and before anything had failed.

    Raises:
        RecordingError: it cannot be read or replayed; the text lacks its subject.
    """
    stream = Stream(path)
    observer = Observer(stream.label.watched)
    samples, pacing = RankSamples(observer), Pacing()
    looks = stream.looks()
    look: Look | None = next(looks)
    last = before = None
    while look is not None:
        following = next(looks, None)
        try:
            observer.note(look)
            pacing.take(samples.new(), look.time - observer.start)
            # A rank has failed only where some process has: those moments are compared one by one.
            near_end = following is None or observer.hurt or _may_hurt(look, following)
            if before is None or near_end:
                last = observer.snapshot()
                before = last if before is None or not _has_failed(last) else before
        except Exception as problem:
            raise RecordingError(f"cannot be replayed: {problem!r}") from problem
        look = following
    assert last is not None and before is not None, "the first look has its snapshot"
    watched = stream.label.watched
    return Part(
        last=_in_sight(last),
        before=_in_sight(before),
        over=stream.over,
        patience=watched.patience,
        attached=watched.attached,
        name=path.name,
        begun=stream.label.made.get("date", ""),
        pace=pacing.pace(),
    )


def _in_sight(snapshot: Snapshot) -> Snapshot:
    """Without the ranks that are out of sight here, which may be thousands: others have seen them."""
    return replace(snapshot, ranks=tuple(view for view in snapshot.ranks if view.state != "unseen"))


def _may_hurt(look: Look, following: Look) -> bool:
    """True where a look may tell of the end of a process that was there at the look before it."""
    reports = [report for report in following.told if report.record is not None]
    pids = {usage.pid for usage in look.alive} | {report.pid for report in reports}
    return (
        (look.status, look.reaped) != (following.status, following.reaped)
        or not pids <= {usage.pid for usage in following.alive}
        or any(
            report.record["error"] or report.record["reaped"]
            for report in reports
            if report.record is not None
        )
    )


def _has_failed(snapshot: Snapshot) -> bool:
    ended = (view.process for view in snapshot.ranks if view.process is not None)
    return any(process.error or process.signal or process.exit_code for process in ended)


def packed(part: Part) -> bytes:
    """A part, for `Unpacker`."""
    file = io.BytesIO()
    _Packer(file, protocol=5).dump(part)
    return file.getvalue()


class _Packer(pickle.Pickler):
    def persistent_id(self, value: object) -> object:
        """What is to be one and the same wherever it is equal; None for everything else."""
        is_large = type(value) is tuple and len(value) >= LARGE
        return value if is_large or isinstance(value, IssuedCall) else None


class Unpacker:
    """Reads parts; what is equal in several of them, and large, is held once."""

    def __init__(self) -> None:
        self._by_value: dict[object, object] = {}

    def part(self, content: bytes) -> Part:
        """The part that was packed."""
        part = _Facts(content, self._by_value).load()
        assert isinstance(part, Part), "only a process that has been taken over sends anything else"
        return part


class _Facts(pickle.Unpickler):
    """Makes facts and nothing else, whatever the process that has read a file may send."""

    def __init__(self, content: bytes, by_value: dict[object, object]) -> None:
        super().__init__(io.BytesIO(content))
        self._by_value = by_value

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == REBUILD:
            return super().find_class(module, name)
        fact = super().find_class(module, name) if module.startswith(f"{FACTS}.") else None
        if not (isinstance(fact, type) and issubclass(fact, msgspec.Struct)):
            raise pickle.UnpicklingError(f"{module}.{name} is no fact")
        return fact

    def persistent_load(self, value: Any) -> Any:
        same: object = value
        if isinstance(value, IssuedCall):  # compared by what they are, and by the sources they show
            same = (value.op, value.stack, *(frame.text for frame in value.stack))
        return self._by_value.setdefault(same, value)
