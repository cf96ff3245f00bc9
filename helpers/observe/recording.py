"""A run in a file, as it was looked at: what follows from that is found out anew at each replay.

A recording is a gzip file of JSON objects, one a line: a label, then the looks, one for each snapshot.
Later versions only add fields that may be left out.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import platform
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, TextIO

import msgspec

from ..model.facts import Snapshot
from .look import Look, Watched, merged
from .observer import Observer

VERSION = 2
"""1 was a recording of snapshots."""

MOST = 1000
"""Looks that `pack` keeps at most."""


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


class Recorder:
    """Writes looks as they come.

    Args:
        target: path of the file, or an open one.

    Attributes:
        problem: why the recording stops before its run, in one sentence; None while it does not.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, target: Path | BinaryIO) -> None:
        self.problem: str | None = None
        self._target = target
        self._file: TextIO = gzip.open(target, "wt", encoding="utf-8")  # noqa: SIM115 (closed by `close`)

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
            self._attempt(lambda: self._file.write(_line(value)))

    def _attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except OSError as problem:
            said = f"the recording {self._target} is not complete: {problem.strerror}"
            self.problem = self.problem or said


def pack(recording: Recording) -> bytes:
    """The content of a recording's file; equal recordings give equal bytes.

    Of a long run, looks that follow each other are merged, so that a replay takes a few seconds.
    """
    looks = recording.looks
    while len(looks) > MOST:
        first, *rest = looks
        looks = (first, *(merged(*pair) for pair in list(pairwise(rest))[::2]), *rest[len(rest) & ~1 :])
    label = {"recording": VERSION, **msgspec.to_builtins(replace(recording, looks=()))}
    del label["looks"]
    return gzip.compress("".join(map(_line, (label, *looks))).encode(), mtime=0)


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


def load(source: Path | bytes) -> Recording:
    """A recording with at least one look.

    Args:
        source: path of its file, or the content.

    Raises:
        RecordingError: it cannot be read as a recording, or holds no look.
    """
    name = source if isinstance(source, Path) else "this"
    with _opened(source, f"{name} cannot be read as a recording") as file:
        label = json.loads(file.readline())
        if not isinstance(label, dict) or label.get("recording") != VERSION:
            raise RecordingError(f"{name} is not a recording of version {VERSION}")
        recording = msgspec.convert({**label, "looks": []}, Recording)
        looks = tuple(msgspec.convert(json.loads(line), Look, str_keys=True) for line in file)
    if not looks:
        raise RecordingError(f"{name} holds no look at a job")
    return replace(recording, looks=looks)


@contextmanager
def _opened(source: Path | bytes, otherwise: str) -> Iterator[TextIO]:
    """The file for reading; whatever its content makes fail becomes one sentence."""
    try:
        content = io.BytesIO(source) if isinstance(source, bytes) else source
        with gzip.open(content, "rt", encoding="utf-8") as file:
            yield file
    except (OSError, EOFError, ValueError, RecursionError, zlib.error, msgspec.MsgspecError) as problem:
        raise RecordingError(f"{otherwise}: {problem}") from problem
