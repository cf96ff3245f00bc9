"""The newest record of every process of a job, from its beacon or from outside."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ..beacon.record import Child, FrameEntry, Record, Sample
from .cells import Cells
from .look import Told

SAMPLES = 16
"""Newest samples of a process that are kept: looks that follow each other at once bring up to eight."""


class Inbox:
    """The newest record of every process, by pid.

    Attributes:
        records: the newest of each process; written: time of its last writing.
        beacons: processes whose record is their own.
        stacks: what `faulthandler` has written for a process.
        samples: the newest of each process, with the user's line at which each was taken.
        cells: those of a notebook that a process runs.
        failures: why the beacon of a process cannot report.
        workers: pid of a DataLoader worker -> its number.
        spawned: pid of a process that `mp.spawn` has made -> its index.
    """

    def __init__(self) -> None:
        self.records: dict[int, Record] = {}
        self.cells: dict[int, Cells] = {}
        self.written: dict[int, float] = {}
        self.beacons: set[int] = set()
        self.stacks: dict[int, str] = {}
        self.samples: dict[int, deque[tuple[Sample, FrameEntry | None]]] = {}
        self.failures: dict[int, str] = {}
        self.workers: dict[int, int] = {}
        self.spawned: dict[int, int] = {}

    def take(self, told: Iterable[Told]) -> None:
        """Take in what is new."""
        for one in told:
            self.written[one.pid] = one.written
            if one.stacks is not None:
                self.stacks[one.pid] = one.stacks
            if one.samples is not None:
                newest = self.samples.setdefault(one.pid, deque(maxlen=SAMPLES))
                places = one.samples["places"]
                for sample in one.samples["samples"]:
                    newest.append((sample, places[sample["place"]] if sample["place"] >= 0 else None))
            if one.failed:
                self.failures[one.pid] = one.failed
            if one.lost:
                self.beacons.discard(one.pid)
                self.records.pop(one.pid, None)
                self.failures[one.pid] = "its record cannot be written, as on a full disk"
            if one.record is not None:
                cells = one.record.get("cells", {})
                self.cells[one.pid] = Cells({file: ([no], text) for file, (no, text) in cells.items()})
                self.records[one.pid] = self.cells[one.pid].in_record(one.record)
                self.beacons.add(one.pid)
                self.workers.update(one.record["workers"])
                self.spawned.update(one.record["spawned"])

    def forget(self, pid: int) -> None:
        """Drop what is known of a process that runs another program by now, or that has ended."""
        self.beacons.discard(pid)
        for known in (
            self.records,
            self.written,
            self.stacks,
            self.samples,
            self.failures,
            self.cells,
        ):
            known.pop(pid, None)

    def child(self, pid: int) -> Child | None:
        """What `multiprocessing` knows of a process; None where it knows nothing."""
        return self.records[pid]["process"] if pid in self.records else None
