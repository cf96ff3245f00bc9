"""A run as it was looked at, for a replay that derives everything else from that.

A recording is a gzip file of JSON objects, one a line: a label, then the looks, one for each snapshot,
and a line that says that the run is over.
Later versions only add fields that may be left out.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import re
import socket
import stat
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec.structs import replace

from ..model.facts import Snapshot
from ..model.redaction import redacted, redacted_source, redacted_value
from .look import Look, Watched, merged
from .observer import Observer

VERSION = 2
"""1 was a recording of snapshots."""

MOST, MOST_PROCESSES = 1000, 16_000
"""Looks that a tape keeps at most, and processes in all of them together: 250 looks at 64 ranks."""

NEWEST = 32
"""Looks at the end that a tape keeps one by one: a verdict needs half of them."""

GZIP = 16 + zlib.MAX_WBITS
"""How zlib is told to write and to expect the head of a gzip file."""

PIECE = 1 << 16
"""Bytes of a packed file that are read at once."""

FURTHEST = 1e10
"""Seconds, three centuries: no clock of a machine says more."""

OVER = {"over": True}
"""The last line of a recording whose run is over."""


class RecordingError(Exception):
    """A file is not a recording, or has another version; the text says which in one sentence."""


class Recording(msgspec.Struct, frozen=True):
    """A run as it was looked at, for a replay anywhere.

    Attributes:
        made: machine, system, versions and date, as text.
        looks: in the order of time.
        name: of the run.
        logs: the newest lines of each process at the end; a stream from `Recorder` has none.
        sources: lines of the user's files by `file:line`.
        over: False for one that breaks off, or goes on: the run may have ended otherwise.
    """

    made: Mapping[str, str]
    watched: Watched
    looks: tuple[Look, ...]
    name: str = ""
    logs: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    sources: Mapping[str, str] = msgspec.field(default_factory=dict)
    over: bool = True

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
    """Keeps looks in a file, which can be read at any moment, up to the newest look.

    Args:
        path: of the file; in a folder, a file named after this machine is made.

    Attributes:
        problem: why the recording stops before its run, in one sentence; None while it does not.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, path: Path) -> None:
        self.problem: str | None = None
        self._path = path / _own_name() if path.is_dir() else path
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, 0o600)  # one that was there before
        self._file = open(descriptor, "wb", buffering=0)  # noqa: SIM115 (closed by `close`)
        self._packer = zlib.compressobj(wbits=GZIP)

    def begin(self, watched: Watched) -> None:
        """Write the label, which says what is watched, and where and with what."""
        label = {"recording": VERSION, "made": provenance(), "watched": watched, "over": False}
        self._write(label)

    def add(self, look: Look) -> None:
        """Append one look; a full disk ends the recording and nothing else."""
        self._write(look)

    def close(self) -> None:
        """Note that the run is over, and finish the file."""
        self._write(OVER)
        if self.problem is None:
            self._attempt(lambda: self._file.write(self._packer.flush()))
        self._attempt(self._file.close)

    def _write(self, value: object) -> None:
        if self.problem is None:
            line = self._packer.compress(_safe_line(value).encode())
            self._attempt(lambda: self._file.write(line + self._packer.flush(zlib.Z_SYNC_FLUSH)))

    def _attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except OSError as problem:
            message = f"the recording {self._path} is not complete: {problem.strerror}"
            self.problem = self.problem or message


def _own_name() -> str:
    """Unlike that of any other recording, also of one from a machine of the same name."""
    host = re.sub(r"[^\w.-]", "_", socket.gethostname()) or "host"
    return f"{host}-{uuid.uuid4().hex[:8]}.rec"


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
    return _look(zlib.decompress(line))


_DECODER = msgspec.json.Decoder(Look)


def _look(line: bytes) -> Look:
    try:
        return _DECODER.decode(line)
    except msgspec.DecodeError:  # what `_line` says of `json`, or damage: ten times as slow
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
        return {key: _field(str(key), part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        # The answer to a question for a source: it is parsed again where the recording is read.
        question = value[0] if len(value) == 2 and type(value[0]) is list else []
        source = question[:1] in (["Source"], ["Cell"])
        return [_source(part) if source else _redacted(part) for part in value]
    return redacted(value) if isinstance(value, str) else value


def _field(name: str, value: object) -> object:
    if name in ("sources", "cells"):
        return _source(value)
    return redacted_value(name, value) if isinstance(value, str) else _redacted(value)


def _source(value: object) -> object:
    """The texts in a value, which are of sources."""
    if isinstance(value, dict):
        return {key: _source(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_source(part) for part in value]
    return redacted_source(value) if isinstance(value, str) else value


def provenance() -> dict[str, str]:
    """Machine, system, versions and date, for the label of a recording."""
    from importlib import metadata  # it takes 10 ms, and only a recording needs it

    facts = {
        "machine": f"{platform.machine()}, {os.cpu_count()} CPU cores",
        "system": platform.platform(),
        "python": platform.python_version(),
    }
    for name in ("torch", "lightning"):
        try:
            facts[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    facts["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    return facts


def load(path: Path) -> Recording:
    """A recording with at least one look; of a long run, looks are merged as a `Tape` does.

    One that breaks off, as that of a machine that was switched off does, is read as far as it goes.

    Raises:
        RecordingError: the file cannot be read as a recording, or holds no look.
    """
    try:
        stream = Stream(path)
        tape = Tape()
        tape.begin(stream.label.watched)
        for look in stream.looks():
            tape.add(look)
    except RecordingError as problem:
        raise RecordingError(f"{path} {problem}") from problem
    return replace(stream.label, looks=tape.recording().looks, over=stream.over)


class Stream:
    """A recording that is read look by look, however long it is.

    Args:
        path: of its file.

    Attributes:
        label: all that it holds but its looks.
        over: whether its run is over, once all looks have been read.

    Raises:
        RecordingError: it cannot be read as a recording; the text lacks its subject.
    """

    def __init__(self, path: Path) -> None:
        with _as_recording_error():
            self._lines = _lines(path)
            label = json.loads(next(self._lines, b"null"))
            if not isinstance(label, dict) or label.get("recording") != VERSION:
                raise RecordingError(f"is not a recording of version {VERSION}")
            self.label = msgspec.convert({**label, "looks": []}, Recording)
            if not -FURTHEST <= self.label.watched.start <= FURTHEST:
                raise RecordingError("says that its run began at a time that no clock tells")
        self.over = self.label.over

    def looks(self) -> Iterator[Look]:
        """The looks, at least one, in the order of time; they can be read once.

        Raises:
            RecordingError: there is none, or one cannot be read; the text lacks its subject.
        """
        number, newest = 0, -FURTHEST
        over = _line(OVER).encode().rstrip(b"\n")
        with _as_recording_error():
            for line in self._lines:
                if line == over:
                    self.over = True
                else:
                    look = _look(line)
                    if not newest <= look.time <= FURTHEST:
                        raise RecordingError("holds looks that are not in the order of time")
                    number, newest = number + 1, look.time
                    yield look
        if not number:
            raise RecordingError("holds no look at a job")


@contextmanager
def _as_recording_error() -> Iterator[None]:
    """Says of whatever is wrong with a file that it is no recording."""
    try:
        yield
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as problem:
        raise RecordingError(f"cannot be read as a recording: {problem}") from problem


def _lines(path: Path) -> Iterator[bytes]:
    """The whole lines of a gzip file, as far as they can be unpacked."""
    unpacker = zlib.decompressobj(wbits=GZIP)
    rest = b""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            try:
                *whole, rest = (rest + unpacker.decompress(piece)).split(b"\n")
            except zlib.error:
                return
            yield from whole
