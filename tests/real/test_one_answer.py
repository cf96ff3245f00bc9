"""All commands agree on one job: what `attach` and `read` say is what `diagnose` says, or less."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from answers import Answer, claims_no_more
from repository import JOBS, ROOT
from score import attached, trial
from score import jobs as collection
from waiting import until

pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="stops and kills by Linux's rules"),
]

DECLARED = collection.read(JOBS)

NIGHTLY = (
    *("both_receive", "left_lock_file", "stopped", "reads_empty_pipe", "ddp_sizes"),
    *("healthy_torchrun", "working_rank"),
)
WEEKLY = (
    *("world_of_three", "barrier_for_one", "key_never_set"),
    *("holds_gil", "asleep", "worker_stopped"),
    *("killed", "spawned_worker"),
    *("well_pauses", "well_thread_sets_key", "asleep_five"),
)
"""Each has hangs that are proved, suspicions, errors, jobs with nothing wrong, and slow ones."""


def has_torch(process: psutil.Process) -> bool:
    with suppress(OSError):
        return "libtorch" in Path(f"/proc/{process.pid}/maps").read_text()
    return False


def ranks_run(pid: int) -> None:
    """Wait until a process below the command has loaded torch, or the command has ended."""
    root = psutil.Process(pid)

    def come() -> bool:
        with suppress(psutil.Error):
            over = root.status() == psutil.STATUS_ZOMBIE
            return over or any(map(has_torch, root.children(recursive=True)))
        return True

    until(come)


def read(recording: Path, file: Path) -> dict[str, Any]:
    words = [sys.executable, "-m", "helpers", "read", "--json", str(file), str(recording)]
    subprocess.run(words, cwd=ROOT, capture_output=True, timeout=60, check=False)
    found: dict[str, Any] = json.loads(file.read_text())
    return found


@pytest.mark.parametrize(
    "name", [*NIGHTLY, *(pytest.param(name, marks=pytest.mark.weekly) for name in WEEKLY)]
)
def test_attach_and_read_say_what_diagnose_says_or_less(name: str, tmp_path: Path) -> None:
    job, recording = DECLARED[name], tmp_path / "job.jsonl.gz"
    told = Answer.of(trial.run(job, record=recording).report)
    again = Answer.of(read(recording, tmp_path / "read.json"))
    assert claims_no_more(again, told), f"diagnose {told}, read {again}"
    beside = Answer.of(attached.run(job, None if job.outcome == "hang" else ranks_run).report)
    assert claims_no_more(beside, told), f"diagnose {told}, attach {beside}"
