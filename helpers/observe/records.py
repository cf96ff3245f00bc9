"""What the beacons of a run have left in its folder: records and stacks."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import psutil
from msgspec.structs import replace

from ..beacon.files import failure_path, read, record_path, samples_path, stacks_path
from ..beacon.record import Record, Samples
from ..model.redaction import redacted_words
from .look import Told

MOST, OLD = 4096, 60.0
"""Files of processes that have ended which are kept, and seconds for which they are kept in any case."""

COARSEST = 2.0
"""Seconds within which a file may be written twice and have the same time: FAT counts by two."""

LOG_TAIL = 20_000
"""Bytes at the end of a file that are read."""


class Beacons:
    """Reads the files that the beacons of a run write.

    Args:
        folder: of the run; None for a job that was started without one.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._states: dict[str, tuple[int, int, int]] = {}
        self._written: dict[int, float] = {}
        self._records: dict[int, bytes] = {}
        self._ticks: dict[int, int] = {}

    def read(self) -> Iterator[Told]:
        """What is new since the last call."""
        if self._folder is None:
            return
        try:
            entries = list(os.scandir(self._folder / "records"))
        except OSError:
            return
        self._make_room(entries)
        kinds_by_pid: dict[int, set[str]] = {}
        for entry in entries:
            number, _, kind = entry.name.partition(".")
            ours = kind in ("record", "stacks", "samples") and number.isdigit()
            if not ours or not entry.is_file(follow_symlinks=False):
                continue
            try:
                stat = entry.stat()
            except FileNotFoundError:  # room was made
                continue
            state = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            if state != self._states.get(entry.name):
                if time.time() - stat.st_mtime > COARSEST:
                    self._states[entry.name] = state
                kinds_by_pid.setdefault(int(number), set()).add(kind)
                if kind == "record":
                    self._written[int(number)] = time.monotonic() - (time.time() - stat.st_mtime)
        for pid, kinds in kinds_by_pid.items():
            stacks = self._text(stacks_path, pid) if "stacks" in kinds else None
            samples = self._new_samples(pid) if "samples" in kinds else None
            report = Told(pid, self._written.get(pid, 0.0), stacks=stacks, samples=samples)
            yield self._with_record(report) if "record" in kinds else report

    def _make_room(self, entries: Sequence[os.DirEntry[str]]) -> None:
        """Remove the files of processes that ended long ago, of which a long job may have many."""
        if len(entries) <= MOST:
            return
        by_age = sorted(self._states.items(), key=lambda entry: entry[1][0])
        for name, (written, _, _) in by_age[:-MOST]:
            pid = int(name.partition(".")[0])
            if time.time() - written / 1e9 > OLD and not psutil.pid_exists(pid):
                (self._folder or Path()).joinpath("records", name).unlink(missing_ok=True)
                self._states.pop(name)
                self._records.pop(pid, None)
                self._ticks.pop(pid, None)

    def _with_record(self, report: Told) -> Told:
        try:
            content = read(record_path(str(self._folder), report.pid))
        except OSError:
            content = b""
        if content is None or (content and content == self._records.get(report.pid)):
            return report  # only the time of its writing is new
        self._records[report.pid] = content
        record = parsed(content)
        if isinstance(record, str):
            return replace(report, failed=record)
        return replace(report, record=record, lost=record is None)

    def _new_samples(self, pid: int) -> Samples | None:
        """The samples of a process that were taken since the last call; None for none."""
        try:
            content = read(samples_path(str(self._folder), pid))
            batch = msgspec.json.decode(content or b"", type=Samples)
        except (OSError, msgspec.DecodeError):
            return None
        newest = self._ticks.get(pid, -1)
        samples = [sample for sample in batch["samples"] if sample["tick"] > newest]
        if not samples:
            return None
        self._ticks[pid] = samples[-1]["tick"]
        return {"samples": samples, "places": batch["places"]}

    def failure(self, pid: int) -> str:
        """What the beacon of a process said when it could not start."""
        return self._text(failure_path, pid).strip()

    def _text(self, path: Callable[[str, int], str], pid: int) -> str:
        return tail(Path(path(str(self._folder), pid))) if self._folder is not None else ""


def parsed(content: bytes) -> Record | str | None:
    """The record that a beacon has written.

    Returns:
        None where there is none; a text where it is not a record, which says why.
    """
    try:
        document = json.loads(content)  # msgspec's own decoder refuses words that are not UTF-8
        if isinstance(document, dict) and "failed" in document:
            return str(document["failed"])
        record = msgspec.convert(document, Record, str_keys=True)
        record["argv"] = list(redacted_words(record["argv"]))
        return record
    except msgspec.ValidationError as problem:
        return f"its record cannot be read: {problem}"
    except ValueError:
        return None


def tail(path: Path) -> str:
    """The end of a text file, empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - LOG_TAIL))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
