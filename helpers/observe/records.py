"""What the processes of a run have left in its folder: records of their beacons, and output."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..beacon import format as records

LOG_TAIL = 20_000
"""Bytes at the end of a file that are read."""


class Inbox:
    """The newest record of every process, by pid.

    Args:
        folder: of the run; None for a job that was started without one, whose records come from
            somebody else.

    Attributes:
        records: the newest of each process; written: monotonic time at which it was last touched.
        beacons: processes whose record is their own.
        workers: pid of a DataLoader worker -> its number.
        spawned: pid of a process that `mp.spawn` has made -> its index.
    """

    def __init__(self, folder: Path | None) -> None:
        self.records: dict[int, Mapping[str, Any]] = {}
        self.written: dict[int, float] = {}
        self.beacons: set[int] = set()
        self.workers: dict[int, int] = {}
        self.spawned: dict[int, int] = {}
        self._folder = folder
        self._seen: dict[int, tuple[int, int, int]] = {}
        self._failures: dict[int, str] = {}

    def read(self) -> None:
        """Take in what is new."""
        if self._folder is None:
            return
        try:
            entries = list(os.scandir(self._folder / "records"))
        except OSError:
            return
        for entry in entries:
            if not entry.name.endswith(".json"):
                continue
            pid = int(entry.name[:-5])
            stat = entry.stat()
            seen = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            if seen != self._seen.get(pid):
                self._seen[pid] = seen
                self.written[pid] = time.monotonic() - (time.time() - stat.st_mtime)
                self._take(pid, records.read(entry.path))

    def process(self, pid: int) -> Mapping[str, Any]:
        """What `multiprocessing` knows of a process; empty where it knows nothing."""
        return (self.records.get(pid) or {}).get("process") or {}

    def crash(self, pid: int) -> str:
        """The stacks that `faulthandler` has written for a process."""
        return "" if self._folder is None else _text(Path(records.stacks_path(str(self._folder), pid)))

    def output(self, pid: int) -> str:
        """The end of what a process has printed."""
        if self._folder is None:
            return ""
        own = Path(records.output_path(str(self._folder), pid))
        return _text(own if own.exists() else self._folder / "output" / "job.log")

    def failure(self, pid: int) -> str:
        """What the beacon of a process said when it could not start, or look."""
        if pid in self._failures or self._folder is None:
            return self._failures.get(pid, "")
        return _text(Path(records.failure_path(str(self._folder), pid))).strip()

    def _take(self, pid: int, record: Mapping[str, Any] | None) -> None:
        if record is None and pid in self.beacons:
            self.beacons.remove(pid)
            del self.records[pid]
            self._failures[pid] = "its record cannot be written, as on a full disk"
        if record is not None and "failed" in record:
            self._failures[pid] = str(record["failed"])
        if record is not None and "threads" in record:
            self.records[pid] = record
            self.beacons.add(pid)
            self.workers.update({int(p): n for p, n in record["workers"].items()})
            self.spawned.update({int(p): n for p, n in record["spawned"].items()})


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - LOG_TAIL))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
