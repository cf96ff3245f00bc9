"""Which processes belong to a run, from one table of processes to the next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from helpers.launch import members
from helpers.launch.members import RESCAN, Members

GUARDIAN, OWNER = 100, 90

Table = dict[int, tuple[int, int]]
"""Pid -> the pid of its parent, and which process of that pid it is."""

BEFORE: Table = {1: (0, 0), 80: (1, 0), OWNER: (80, 0), GUARDIAN: (OWNER, 0)}


@dataclass(frozen=True)
class Process:
    """A process as it was when it was first seen."""

    pid: int
    born: int


class Machine:
    """The tables of a machine, one for each look; `read` has what was asked of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, marked: Iterable[int] = ()) -> None:
        self.table: Table = {}
        self.unreadable: set[int] = set()
        self.read: list[set[int]] = []
        self.clock = 0.0
        self.marked = set(marked)
        monkeypatch.setattr(members, "parents", self.parents)
        monkeypatch.setattr(
            members, "carriers", lambda _: map(self.process, self.marked & {*self.table})
        )
        monkeypatch.setattr(members, "is_alive", self.is_alive)
        monkeypatch.setattr(members, "time", SimpleNamespace(monotonic=lambda: self.clock))
        monkeypatch.setattr(members.psutil, "pids", lambda: list(self.table))
        monkeypatch.setattr(members.psutil, "Process", self.process)

    def parents(self, of: Iterable[int]) -> dict[int, int]:
        self.read.append({*of})
        return {pid: self.table[pid][0] for pid in self.read[-1] - self.unreadable}

    def process(self, pid: int) -> Process:
        return Process(pid, self.table[pid][1])

    def carriers(self, run_id: str) -> list[Process]:
        return [self.process(pid) for pid in self.marked & self.table.keys()]

    def is_alive(self, process: Process) -> bool:
        return process.pid in self.table and self.process(process.pid) == process


JOB: Table = {110: (GUARDIAN, 0), 111: (110, 0), 112: (111, 0)}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        pytest.param([JOB], [{110, 111, 112}], id="what descends from the guardian"),
        pytest.param([{}, JOB], [set(), {110, 111, 112}], id="what has come since"),
        pytest.param(
            [{110: (GUARDIAN, 0)}, {111: (GUARDIAN, 0), 112: (111, 0)}],
            [{110}, {111, 112}],
            id="orphans that the guardian has got",
        ),
        pytest.param(
            [{111: (110, 0)}, {111: (GUARDIAN, 0)}],
            [set(), {111}],
            id="its parent ended before that was read",
        ),
        pytest.param(
            [{112: (111, 0), 111: (110, 0)}, {112: (111, 0), 111: (GUARDIAN, 0)}],
            [set(), {111, 112}],
            id="the parent of its parent did",
        ),
        pytest.param([{120: (80, 0)}, {121: (120, 0)}], [set(), set()], id="those of others"),
        pytest.param([{120: (0, 0)}, {121: (120, 0)}], [set(), set()], id="those of other namespaces"),
        pytest.param(
            [{120: (80, 0)}, {}, {120: (GUARDIAN, 1)}],
            [set(), set(), {120}],
            id="a pid that was another's",
        ),
        pytest.param(
            [{110: (GUARDIAN, 0)}, {110: (80, 1)}, {110: (80, 1)}],
            [{110}, set(), set()],
            id="a pid that is another's now",
        ),
    ],
)
def test_the_members_of_a_run(
    tables: list[Table], expected: list[set[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(monkeypatch)
    run = Members(GUARDIAN, "job-1")
    for table, those in zip(tables, expected, strict=True):
        machine.table = BEFORE | table
        assert {process.pid for process in run.look()} == those


def test_what_is_known_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    run = Members(GUARDIAN, "job-1")
    machine.table = BEFORE | {110: (GUARDIAN, 0)}
    run.look()
    machine.table |= {113: (110, 0)}
    run.look()
    assert machine.read == [{1, 80, OWNER, 110}, {113}]


def test_what_carries_the_run_s_id_is_searched_for_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, marked={130, 131})
    run = Members(GUARDIAN, "job-1")
    seen = []
    for now, table in ((0.0, {130: (1, 0)}), (1.0, {131: (1, 0)}), (RESCAN, {131: (1, 0)})):
        machine.clock, machine.table = now, BEFORE | table
        seen.append([process.pid for process in run.look()])
    assert seen == [[130], [], [131]]
