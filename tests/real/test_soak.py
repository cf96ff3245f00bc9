"""Small versions of the long runs of `make soak`, so that the tool itself works when it is needed."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from score import trial
from soak import kills, learners, rounds

pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


def test_two_kills() -> None:
    part = kills.measure(2, seed=7)
    assert part.faults == ()
    assert part.lines[0].startswith("2 runs, seed 7")


def test_what_is_left_of_a_run_is_found(tmp_path: Path) -> None:
    environment = {**os.environ, trial.MARKER: "mine", "STUCK_RANKS_ID": "job-1"}
    with (
        subprocess.Popen(
            ["cat", "-"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process,
        socket.socket() as server,
        (tmp_path / "lock-0").open("w") as lock,
    ):
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"up\n")
        process.stdin.flush()
        process.stdout.readline()  # while it starts, its environment reads as empty
        server.listen()
        (tmp_path / "port-0").write_text(str(server.getsockname()[1]))
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert kills._alive("mine") == ["process cat -"]
        assert list(kills._held(tmp_path, os.environ.get(trial.MARKER, ""))) == ["lock-0"]
        process.kill()


@pytest.mark.timeout(600)
def test_a_round_in_a_kernel() -> None:
    assert rounds.measure(1, ["05"]).faults == ()


def test_growth_and_another_outcome_are_faults() -> None:
    sizes = [
        {"memory": 2**20, "objects": 7, "threads": 5, "descriptors": 9 + number, "widgets": 3}
        for number in range(8)
    ]
    part = rounds.judge([["hang"]] * 7 + [["ok"]], sizes, ["05"])
    assert part.faults == ("turn 8 ended ok, and turn 1 hang", "descriptors grew from 10 to 16")


@pytest.mark.timeout(600)
@pytest.mark.weekly
def test_two_learners() -> None:
    part = learners.measure(2, "05")
    assert part.faults == ()
