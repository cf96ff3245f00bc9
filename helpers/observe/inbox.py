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

    def take(self, reports: Iterable[Told]) -> None:
        """Take in what is new."""
        for report in reports:
            self.written[report.pid] = report.written
            if report.stacks is not None:
                self.stacks[report.pid] = report.stacks
            if report.samples is not None:
                newest = self.samples.setdefault(report.pid, deque(maxlen=SAMPLES))
                places = report.samples["places"]
                for sample in report.samples["samples"]:
                    newest.append((sample, places[sample["place"]] if sample["place"] >= 0 else None))
            if report.failed:
                self.failures[report.pid] = report.failed
            if report.lost:
                self.beacons.discard(report.pid)
                self.records.pop(report.pid, None)
                self.failures[report.pid] = "its record cannot be written, as on a full disk"
            if report.record is not None:
                cells = report.record.get("cells", {})
                self.cells[report.pid] = Cells(
                    {file: ([no], text) for file, (no, text) in cells.items()}
                )
                self.records[report.pid] = self.cells[report.pid].in_record(report.record)
                self.beacons.add(report.pid)
                self.workers.update(report.record["workers"])
                self.spawned.update(report.record["spawned"])

    def forget(self, pid: int) -> None:
        """Drop what is known of a process that runs another program by now, or that has ended."""
        self.beacons.discard(pid)
        for by_pid in (self.records, self.written, self.stacks, self.samples, self.failures, self.cells):
            by_pid.pop(pid, None)

    def child(self, pid: int) -> Child | None:
        """What `multiprocessing` knows of a process; None where it knows nothing."""
        return self.records[pid]["process"] if pid in self.records else None
