"""The newest word of every process of a job, from its beacon or from outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .look import Told


class Inbox:
    """The newest record of every process, by pid.

    Attributes:
        records: the newest of each process; written: time of its last writing.
        beacons: processes whose record is their own.
        stacks: what `faulthandler` has written for a process.
        failures: why the beacon of a process could not start, or went blind.
        workers: pid of a DataLoader worker -> its number.
        spawned: pid of a process that `mp.spawn` has made -> its index.
    """

    def __init__(self) -> None:
        self.records: dict[int, Mapping[str, Any]] = {}
        self.written: dict[int, float] = {}
        self.beacons: set[int] = set()
        self.stacks: dict[int, str] = {}
        self.failures: dict[int, str] = {}
        self.workers: dict[int, int] = {}
        self.spawned: dict[int, int] = {}

    def take(self, told: Iterable[Told]) -> None:
        """Take in what is new."""
        for one in told:
            self.written[one.pid] = one.written
            if one.stacks is not None:
                self.stacks[one.pid] = one.stacks
            if one.lost and one.pid in self.beacons:
                self.beacons.remove(one.pid)
                del self.records[one.pid]
                self.failures[one.pid] = "its record cannot be written, as on a full disk"
            if one.record is not None:
                self._take(one.pid, one.record)

    def process(self, pid: int) -> Mapping[str, Any]:
        """What `multiprocessing` knows of a process; empty where it knows nothing."""
        return (self.records.get(pid) or {}).get("process") or {}

    def _take(self, pid: int, record: Mapping[str, Any]) -> None:
        if "failed" in record:
            self.failures[pid] = str(record["failed"])
        if "threads" in record:
            self.records[pid] = record
            self.beacons.add(pid)
            self.workers.update({int(p): n for p, n in record["workers"].items()})
            self.spawned.update({int(p): n for p, n in record["spawned"].items()})
