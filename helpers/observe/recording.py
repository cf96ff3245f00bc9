"""A run as it was looked at, for a replay that derives everything else from that.

A recording is a gzip file of JSON objects, one a line: a label, then the looks, one for each snapshot.
Later versions only add fields that may be left out.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Protocol, TextIO

import msgspec

from ..model.facts import Snapshot
from ..model.redaction import redacted
from .look import Look, Watched, merged
from .observer import Observer

VERSION = 2
"""1 was a recording of snapshots."""

MOST, MOST_PROCESSES = 1000, 16_000
"""Looks that a tape keeps at most, and processes in all of them together: 250 looks at 64 ranks."""

NEWEST = 32
"""Looks at the end that a tape keeps one by one: a verdict needs half of them."""


class RecordingError(Exception):
    """A file is not a recording, or has another version; the text says which in one sentence."""


@dataclass(frozen=True)
class Recording:
    """A run as it was looked at, for a replay anywhere.

    Attributes:
        made: machine, system, versions and date, as text.
        looks: in the order of time.
        name: of the run.
        logs: the newest lines of each process at the end; a stream from `Recorder` has none.
        sources: lines of the user's files by `file:line`.
    """

    made: Mapping[str, str]
    watched: Watched
    looks: tuple[Look, ...]
    name: str = ""
    logs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    def snapshots(self) -> Iterator[Snapshot]:
        """What was known of the job after each look.

        Raises:
            RecordingError: the looks contradict each other, as those of a run never do.
        """
        observer = Observer(self.watched)
        for look in self.looks:
            try:
                snapshot = observer.take(look)
            except Exception as problem:
                raise RecordingError(f"this recording cannot be replayed: {problem!r}") from problem
            yield snapshot


class Keeper(Protocol):
    """What keeps the looks at a run: a `Recorder` or a `Tape`."""

    def begin(self, watched: Watched) -> None:
        """Note what is watched."""

    def add(self, look: Look) -> None:
        """Keep one more look."""

    def close(self) -> None:
        """The run is over."""


class Recorder:
    """Keeps looks in a file.

    Attributes:
        problem: why the recording stops before its run, in one sentence; None while it does not.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, path: Path) -> None:
        self.problem: str | None = None
        self._path = path
        self._file: TextIO = gzip.open(path, "wt", encoding="utf-8")  # noqa: SIM115 (closed by `close`)

    def begin(self, watched: Watched) -> None:
        """Write the label, which says what is watched, and where and with what."""
        self._write({"recording": VERSION, "made": provenance(), "watched": watched})

    def add(self, look: Look) -> None:
        """Append one look; a full disk ends the recording and nothing else."""
        self._write(look)

    def close(self) -> None:
        """Finish the file."""
        self._attempt(self._file.close)

    def _write(self, value: object) -> None:
        if self.problem is None:
            self._attempt(lambda: self._file.write(_safe_line(value)))

    def _attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except OSError as problem:
            said = f"the recording {self._path} is not complete: {problem.strerror}"
            self.problem = self.problem or said


class Tape:
    """Keeps looks in memory; of a long run, older looks that follow each other are merged."""

    def __init__(self) -> None:
        self._watched: Watched | None = None
        self._looks: list[bytes] = []
        self._merged = 0

    def begin(self, watched: Watched) -> None:
        """Note what is watched."""
        self._watched = watched

    def add(self, look: Look) -> None:
        """Keep one more look."""
        self._looks.append(_packed(look))
        room = min(MOST, MOST_PROCESSES // (len(look.alive) + 1))
        if len(self._looks) > max(2 * NEWEST, room):
            self._merge_two()

    def close(self) -> None:
        """What is kept stays."""

    def recording(self) -> Recording:
        """What was kept, with nothing but the looks."""
        assert self._watched is not None, "a run begins before it ends"
        return Recording(provenance(), self._watched, tuple(map(_unpacked, self._looks)))

    def _merge_two(self) -> None:
        """Merge two neighbours, each time the next two; the first and the newest looks stay."""
        self._merged = self._merged % (len(self._looks) - NEWEST - 2) + 1
        two = slice(self._merged, self._merged + 2)
        self._looks[two] = [_packed(merged(*map(_unpacked, self._looks[two])))]


def _packed(look: Look) -> bytes:
    return zlib.compress(_line(look).encode(), level=1)


def _unpacked(line: bytes) -> Look:
    return _look(zlib.decompress(line).decode())


def _look(line: str) -> Look:
    return msgspec.convert(json.loads(line), Look, str_keys=True)


def pack(recording: Recording) -> bytes:
    """The content of a recording's file; equal recordings give equal bytes."""
    label = {"recording": VERSION, **msgspec.to_builtins(replace(recording, looks=()))}
    del label["looks"]
    return gzip.compress("".join(map(_safe_line, (label, *recording.looks))).encode(), mtime=0)


def _line(value: object) -> str:
    # Written by `json`, since msgspec encodes neither an infinite number nor a lone surrogate,
    # which Python puts in the name of a file that is not UTF-8.
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":")) + "\n"


def _safe_line(value: object) -> str:
    """The same without what may be a secret, for a file that is passed on."""
    return _line(_redacted(msgspec.to_builtins(value)))


def _redacted(value: object) -> object:
    if isinstance(value, dict):
        return {key: _redacted(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(part) for part in value]
    return redacted(value) if isinstance(value, str) else value


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


def load(path: Path) -> Recording:
    """A recording with at least one look; of a long run, looks are merged as a `Tape` does.

    Raises:
        RecordingError: the file cannot be read as a recording, or holds no look.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return _loaded(path, file)
    except (OSError, EOFError, ValueError, RecursionError, zlib.error, msgspec.MsgspecError) as problem:
        raise RecordingError(f"{path} cannot be read as a recording: {problem}") from problem


def _loaded(path: Path, file: TextIO) -> Recording:
    label = json.loads(file.readline())
    if not isinstance(label, dict) or label.get("recording") != VERSION:
        raise RecordingError(f"{path} is not a recording of version {VERSION}")
    recording = msgspec.convert({**label, "looks": []}, Recording)
    tape = Tape()
    tape.begin(recording.watched)
    for look in map(_look, file):
        tape.add(look)
    looks = tape.recording().looks
    if not looks:
        raise RecordingError(f"{path} holds no look at a job")
    return replace(recording, looks=looks)
