"""A run as it was seen: snapshots written to a file and read back, or thinned out in memory.

A recording is a gzip file of JSON objects, one a line: a label, then the snapshots.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

import msgspec

from ..model.facts import ProcessView, Snapshot

VERSION = 1


class RecordingError(Exception):
    """A file is not a recording, or has another version; the text says which in one sentence."""


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
        OSError: the file cannot be created.
    """

    def __init__(self, path: Path) -> None:
        self.problem: str | None = None
        self._path = path
        self._file = gzip.open(path, "wt", encoding="utf-8")  # noqa: SIM115 (closed by `close`)
        self._file.write(_line({"recording": VERSION, "made": provenance()}))

    def add(self, snapshot: Snapshot) -> None:
        """Append one snapshot; a full disk ends the recording and nothing else."""
        if self.problem is None:
            self._attempt(lambda: self._file.write(_line(snapshot)))

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
    label = {"recording": VERSION, **msgspec.to_builtins(recording)}
    snapshots = label.pop("snapshots")
    lines = map(_line, (label, *snapshots))
    return gzip.compress("".join(lines).encode(), mtime=0)


def _line(value: object) -> str:
    # Written by `json`, since msgspec encodes neither an infinite number nor a lone surrogate,
    # which Python puts in the name of a file that is not UTF-8.
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":")) + "\n"


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
    with _opened(path) as file:
        _label(path, file)
        yield from map(_snapshot, file)


def load(path: Path) -> Recording:
    """A recording with its label and at least one snapshot.

    Raises:
        RecordingError: the file cannot be read as a recording, or holds no snapshot.
    """
    with _opened(path) as file:
        label = _label(path, file)
        recording = msgspec.convert({"made": {}, **label, "snapshots": ()}, Recording)
        snapshots = tuple(map(_snapshot, file))
    if not snapshots:
        raise RecordingError(f"{path} holds no snapshot")
    return replace(recording, snapshots=snapshots)


def _snapshot(line: str) -> Snapshot:
    return msgspec.convert(json.loads(line), Snapshot)


def _label(path: Path, file: TextIO) -> dict[str, Any]:
    """The first line, once it is known to be that of a recording."""
    label = json.loads(file.readline())
    if not isinstance(label, dict) or label.get("recording") != VERSION:
        raise RecordingError(f"{path} is not a recording of version {VERSION}")
    return label


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The file for reading; whatever its content makes fail becomes one sentence."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield file
    except (OSError, EOFError, ValueError, RecursionError, zlib.error, msgspec.MsgspecError) as problem:
        raise RecordingError(f"{path} cannot be read as a recording: {problem}") from problem


MOST = 1000
"""Snapshots kept at most. Drawing 1000 of two ranks takes 30 ms."""

MOST_PROCESSES = 16_000
"""Processes in all snapshots together: 250 snapshots of 64 ranks. Drawing them takes 0.2 s."""


_LARGE = ("command", "stack", "waits", "collectives", "ports", "error")
"""The large fields of a process, which rarely change from one look to the next."""


class History:
    """Snapshots in the order of time; the longer the run and the more ranks, the further apart.

    Attributes:
        snapshots: those kept; the newest is always among them.
    """

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self._apart = 0.0
        self._held: dict[object, Any] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Keep one more. It replaces the last one when that lies too close before it."""
        kept = self.snapshots
        if len(kept) > 1 and kept[-1].time - kept[-2].time < self._apart:
            kept.pop()
        kept.append(self._lean(snapshot))
        processes = 1 + sum(1 + len(view.children) for view in snapshot.ranks)
        if len(kept) > max(16, min(MOST, MOST_PROCESSES // processes)):
            self._apart = (kept[-1].time - kept[0].time) / len(kept) * 2
            del kept[1:-1:2]

    def _lean(self, snapshot: Snapshot) -> Snapshot:
        """The same snapshot; what is large and equal to a part of the last one is held once.

        Of 64 ranks that stand still, 130 snapshots take 11 MB instead of 77 to 126.
        """
        before, self._held = self._held, {}

        def lean(process: ProcessView) -> ProcessView:
            parts = {name: getattr(process, name) for name in _LARGE}
            for name, part in parts.items():
                parts[name] = self._held.setdefault(part, before.get(part, part))
            return replace(process, **parts)

        return replace(
            snapshot,
            ranks=tuple(
                replace(
                    view,
                    process=view.process and lean(view.process),
                    children=tuple(
                        replace(child, process=lean(child.process)) for child in view.children
                    ),
                )
                for view in snapshot.ranks
            ),
            launchers=tuple(map(lean, snapshot.launchers)),
        )
