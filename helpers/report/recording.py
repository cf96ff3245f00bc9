"""Write a stream of snapshots to a file and read it back: one JSON object a line, gzipped."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import json
import os
import platform
import types
import typing
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from ..model.facts import ChildView, ProcessView, RankView, Snapshot

VERSION = 1

T = TypeVar("T")


class RecordingError(Exception):
    """A file is no recording, or one of another version; the text says which."""


@dataclass(frozen=True)
class Recording:
    """A run as it was seen, for a replay anywhere.

    Attributes:
        made: machine, system, versions and date, as text.
        snapshots: in the order of time.
        name: of the run.
        logs: the newest lines of each process at the end; a stream from `Recorder` has none.
        sources: lines of the user's files by `file:line`.
    """

    made: Mapping[str, str]
    snapshots: tuple[Snapshot, ...]
    name: str = ""
    logs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


class Recorder:
    """Writes snapshots as they come; the first line says where and with what they were made.

    Attributes:
        problem: why the recording stops before its run, in one sentence; None while it does not.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.problem: str | None = None
        self._path = path
        self._file = gzip.open(path, "wt", encoding="utf-8")  # noqa: SIM115 (closed by `close`)
        self._file.write(_line({"recording": VERSION, "made": provenance()}))

    def add(self, snapshot: Snapshot) -> None:
        """Append one snapshot; a full disk ends the recording and nothing else."""
        if self.problem is None:
            self._attempt(lambda: self._file.write(_line(dataclasses.asdict(snapshot))))

    def close(self) -> None:
        """Finish the file."""
        self._attempt(self._file.close)

    def _attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except OSError as problem:
            said = f"the recording {self._path} is not complete: {problem.strerror}"
            self.problem = self.problem or said


def pack(recording: Recording) -> bytes:
    """The content of a recording's file; equal recordings give equal bytes."""
    head = {
        "recording": VERSION,
        "made": dict(recording.made),
        "name": recording.name,
        "logs": {label: list(lines) for label, lines in recording.logs.items()},
        "sources": dict(recording.sources),
    }
    lines = [_line(head), *(_line(dataclasses.asdict(snapshot)) for snapshot in recording.snapshots)]
    return gzip.compress("".join(lines).encode(), mtime=0)


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


def provenance() -> dict[str, str]:
    """Machine, system, versions and date, for the label of a recording."""
    found = {
        "machine": f"{platform.machine()}, {os.cpu_count()} CPU cores",
        "system": platform.platform(),
        "python": platform.python_version(),
    }
    for name in ("torch", "lightning"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    found["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    return found


def replay(path: Path) -> Iterator[Snapshot]:
    """The snapshots of a recording, in order.

    Raises:
        RecordingError: the file cannot be read as a recording.
    """
    with _clear_errors(path), gzip.open(path, "rt", encoding="utf-8") as file:
        _head(path, file.readline())
        for line in file:
            value = json.loads(line)
            if not isinstance(value, dict):
                raise RecordingError(f"{path} holds a line that is no snapshot")
            yield build(Snapshot, value)


def load(path: Path) -> Recording:
    """A recording with its label and at least one snapshot.

    Raises:
        RecordingError: the file cannot be read as a recording, or holds no snapshot.
    """
    snapshots = tuple(replay(path))
    if not snapshots:
        raise RecordingError(f"{path} holds no snapshot")
    with _clear_errors(path), gzip.open(path, "rt", encoding="utf-8") as file:
        head = _head(path, file.readline())
        made = build(dict[str, str], head.get("made", {}))
        logs = build(dict[str, tuple[str, ...]], head.get("logs", {}))
        sources = build(dict[str, str], head.get("sources", {}))
        return Recording(made, snapshots, build(str, head.get("name", "")), logs, sources)


def _head(path: Path, line: str) -> dict[str, Any]:
    head = json.loads(line)
    if not isinstance(head, dict) or head.get("recording") != VERSION:
        raise RecordingError(f"{path} is no recording of version {VERSION}")
    return head


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    """Whatever a file's content makes fail becomes one sentence."""
    try:
        yield
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zlib.error) as problem:
        raise RecordingError(f"{path} cannot be read as a recording: {problem}") from problem


def build(kind: type[T], value: Any) -> T:
    """Make a value of `kind` from what `dataclasses.asdict` and JSON have made of it.

    Args:
        kind: a dataclass, a container of them, or a plain type.

    Raises:
        KeyError, TypeError: the value does not fit.
    """
    return typing.cast(T, _build(kind, value))


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    """The type of each field; looking them up takes most of the time of a replay."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _build(kind: Any, value: Any) -> Any:
    if value is None or kind is Any:
        return value
    if dataclasses.is_dataclass(kind):
        hints = _hints(typing.cast(type, kind))
        known = {name: value[name] for name in hints if name in value}
        return kind(**{name: _build(hints[name], item) for name, item in known.items()})  # type: ignore[operator]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal and value not in arguments:
        raise TypeError(f"{value!r} is none of {', '.join(map(str, arguments))}")
    if origin in (typing.Union, types.UnionType):
        return _build(next(part for part in arguments if part is not type(None)), value)
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_build(arguments[0], item) for item in value)
        return tuple(_build(part, item) for part, item in zip(arguments, value, strict=True))
    if origin is dict:
        return {_build(arguments[0], k): _build(arguments[1], v) for k, v in value.items()}
    plain = (int, float) if kind is float else kind
    if kind in (str, int, float, bool) and not isinstance(value, plain):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


MOST = 1000
"""Snapshots kept at most. Drawing 1000 of two ranks takes 30 ms."""

MOST_PROCESSES = 16_000
"""Processes in all snapshots together: 250 snapshots of 64 ranks. Drawing them takes 0.2 s."""


class History:
    """Snapshots in the order of time; the longer the run and the more ranks, the further apart.

    Attributes:
        snapshots: those kept; the newest is always among them.
    """

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self._apart = 0.0
        self._before: dict[int, ProcessView] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Keep one more. It takes the place of the last one when that lies too close before it."""
        kept = self.snapshots
        if len(kept) > 1 and kept[-1].time - kept[-2].time < self._apart:
            kept.pop()
        kept.append(self._lean(snapshot))
        processes = 1 + sum(1 + len(view.children) for view in snapshot.ranks)
        if len(kept) > max(16, min(MOST, MOST_PROCESSES // processes)):
            self._apart = (kept[-1].time - kept[0].time) / len(kept) * 2
            del kept[1:-1:2]

    def _lean(self, snapshot: Snapshot) -> Snapshot:
        """The same snapshot; what has not changed of a process is held once, not in each snapshot."""
        before, self._before = self._before, {}
        return replace(
            snapshot,
            ranks=tuple(self._lean_rank(view, before) for view in snapshot.ranks),
            launchers=tuple(self._share(process, before) for process in snapshot.launchers),
        )

    def _lean_rank(self, view: RankView, before: dict[int, ProcessView]) -> RankView:
        children: tuple[ChildView, ...] = tuple(
            replace(child, process=self._share(child.process, before)) for child in view.children
        )
        process = None if view.process is None else self._share(view.process, before)
        return replace(view, process=process, children=children)

    def _share(self, new: ProcessView, before: dict[int, ProcessView]) -> ProcessView:
        old = before.get(new.pid)
        if old is not None:
            new = replace(
                new,
                command=old.command if old.command == new.command else new.command,
                stack=old.stack if old.stack == new.stack else new.stack,
                waits=old.waits if old.waits == new.waits else new.waits,
                collectives=old.collectives if old.collectives == new.collectives else new.collectives,
                ports=old.ports if old.ports == new.ports else new.ports,
                error=old.error if old.error == new.error else new.error,
            )
        self._before[new.pid] = new
        return new
