"""No healthy program is called hung, and a thread that goes on beside a hang hides nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from soak.controls import SHORT, all_ways
from soak.loops import Hang, Loop, all_hangs, some_loops

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


def faults(programs: list[Loop] | list[Hang]) -> list[str]:
    return [run.fault for run in all_ways(programs, 1, SHORT) if not run.is_right]


def test_a_loop_comes_back_to_its_line_and_has_moved() -> None:
    assert faults([Loop("sleeps", "main", 0.7), Loop("items of a thread", "main", 9.0)]) == []


def test_a_thread_that_beats_hides_no_hang() -> None:
    assert faults([Hang("a queue", "prints"), Hang("an event", "computes")]) == []


@pytest.mark.nightly
def test_loops_at_random() -> None:
    assert faults(some_loops(11, 18)) == []


@pytest.mark.nightly
def test_hangs_beside_which_a_thread_goes_on() -> None:
    assert faults(all_hangs()[::3]) == []


HOLDS = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("holds it", flush=True)
while True:
    time.sleep(float(sys.argv[2]))
"""
ASKS = "import fcntl, sys\nfcntl.flock(open(sys.argv[1], 'w'), fcntl.LOCK_EX)\n"


@pytest.mark.nightly
@pytest.mark.parametrize(("period", "outcome"), [("0.5", "running"), ("100000", "hang")])
def test_a_lock_that_a_process_outside_the_job_holds(tmp_path: Path, period: str, outcome: str) -> None:
    """While its holder goes on, it may give the lock back."""
    lock, report = str(tmp_path / "lock"), tmp_path / "report.json"
    asks = [sys.executable, "-c", ASKS, lock]
    diagnose = ["diagnose", "--patience", "5", "--max-seconds", "12", "--json", str(report)]
    holds = [sys.executable, "-c", HOLDS, lock, period]
    with subprocess.Popen(holds, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None and holder.stdout.readline() == "holds it\n"
            command = [str(Path(sys.executable).with_name("stuck-ranks")), *diagnose, "--", *asks]
            subprocess.run(command, capture_output=True, timeout=60, check=False)
        finally:
            holder.kill()
    assert json.loads(report.read_text())["outcome"] == outcome
