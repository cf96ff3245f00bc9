"""The smallest form of each part of `make bench`, so that the page can be made at any time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from repository import ROOT

pytestmark = [pytest.mark.real, pytest.mark.nightly]

weekly = pytest.mark.weekly


def lines_of(call: str) -> list[str]:
    """What a part of the page says."""
    module = call.partition("(")[0]
    program = f"from {module} import {module}\nfor line in {call}: print(line)"
    parts = (ROOT / "benchmarks", ROOT, ROOT / "tools", ROOT / "tests" / "support")
    path = os.pathsep.join(map(str, parts))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=560,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@weekly
def test_ours_names_rank_call_line_and_branch_of_a_hang() -> None:
    rows = [
        line for line in lines_of("rivals(['barrier_for_one'])") if line.startswith("| `stuck-ranks")
    ]
    assert [cell.strip() for cell in rows[0].split("|")][4:-1] == ["1 of 1", *["1 of 1"] * 6]


def test_every_line_of_a_job_that_prints_arrives() -> None:
    rows = [line.split("|") for line in lines_of("throughput(1, 80_000)") if "process" in line]
    assert [cells[-2].strip() for cells in rows[:3]] == ["100.0%"] * 3


@weekly
@pytest.mark.timeout(600)
def test_the_cost_is_an_interval_for_each_measure() -> None:
    row = next(
        line
        for line in lines_of("cost(['ddp'], pairs=2, starts=1, rounds=1)")
        if line.startswith("| DDP |")
    )
    assert row.count(" to ") == 6


def test_the_cost_of_a_call_is_an_interval_for_each_measure() -> None:
    row = next(line for line in lines_of("calls([3], rounds=1)") if line.startswith("| 3 |"))
    assert row.count(" to ") == 4


@weekly
def test_what_dominates_the_waiting_is_said_of_a_run() -> None:
    row = next(
        line for line in lines_of("waits(['05'], browser=False)") if line.startswith("| 05 broken")
    )
    cells = [cell.strip() for cell in row.split("|")[2:-1]]
    assert all(cell.endswith(" s") for cell in (cells[1], *cells[4:])) and ", " in cells[-1]
