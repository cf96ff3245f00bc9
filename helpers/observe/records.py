"""What the processes of a run have left in its folder: records of their beacons, and output."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from ..beacon.record import Record, failure_path, output_path, record_path, stacks_path
from .look import Told

LOG_TAIL = 20_000
"""Bytes at the end of a file that are read."""


class Beacons:
    """Reads the files that the beacons of a run write.

    Args:
        folder: of the run; None for a job that was started without one.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._seen: dict[str, tuple[int, int, int]] = {}
        self._written: dict[int, float] = {}

    def read(self) -> Iterator[Told]:
        """What is new since the last call."""
        if self._folder is None:
            return
        try:
            entries = list(os.scandir(self._folder / "records"))
        except OSError:
            return
        changed: dict[int, set[str]] = {}
        for entry in entries:
            number, _, kind = entry.name.partition(".")
            if kind not in ("json", "stacks") or not number.isdigit():
                continue
            stat = entry.stat()
            seen = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            if seen != self._seen.get(entry.name):
                self._seen[entry.name] = seen
                changed.setdefault(int(number), set()).add(kind)
                if kind == "json":
                    self._written[int(number)] = time.monotonic() - (time.time() - stat.st_mtime)
        for pid, kinds in changed.items():
            record = read(record_path(str(self._folder), pid)) if "json" in kinds else None
            yield Told(
                pid,
                self._written.get(pid, 0.0),
                record=None if isinstance(record, str) else record,
                failed=record if isinstance(record, str) else "",
                lost="json" in kinds and record is None,
                stacks=self._text(stacks_path, pid) if "stacks" in kinds else None,
            )

    def output(self, pid: int) -> str:
        """The end of what a process has printed."""
        if self._folder is None:
            return ""
        own = Path(output_path(str(self._folder), pid))
        return tail(own if own.exists() else self._folder / "output" / "job.log")

    def failure(self, pid: int) -> str:
        """What the beacon of a process said when it could not start."""
        return self._text(failure_path, pid).strip()

    def _text(self, path: Callable[[str, int], str], pid: int) -> str:
        return tail(Path(path(str(self._folder), pid))) if self._folder is not None else ""


def read(path: str) -> Record | str | None:
    """The record at `path`.

    Returns:
        None where there is none; a text where it is not a record, which says why.
    """
    try:
        with open(path, "rb") as file:
            found = json.load(file)  # msgspec's own decoder refuses words that are not UTF-8
        if isinstance(found, dict) and "failed" in found:
            return str(found["failed"])
        return msgspec.convert(found, Record, str_keys=True)
    except msgspec.ValidationError as problem:
        return f"its record cannot be read: {problem}"
    except (OSError, ValueError):
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
