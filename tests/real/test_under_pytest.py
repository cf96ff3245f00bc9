"""A hang in a test suite: the report names the test, and GitHub shows it at its line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

from helpers.launch.processes import free_port

pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="the guardian and signals of Linux"),
]

TESTS = """
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, port):
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    if rank == 0:
        dist.barrier()
    dist.all_reduce(torch.ones(3))


def test_before():
    assert True


@pytest.mark.parametrize("port", [PORT])
def test_ranks_meet(port):
    mp.spawn(work, (port,), nprocs=2)
"""


def test_a_hang_in_a_test_suite_is_told_with_its_test(tmp_path: Path) -> None:
    port = str(free_port())
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "test_meeting.py").write_text(TESTS.replace("PORT", port))
    command = [sys.executable, "-m", "helpers", "diagnose", "--json", "report.json", "--"]
    done = subprocess.run(
        [*command, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "suite"],
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    job = json.loads((tmp_path / "report.json").read_text())["job"]
    assert job["test"] == f"suite/test_meeting.py::test_ranks_meet[{port}]"
    (shown,) = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    assert shown.startswith("::error file=suite/test_meeting.py,line=11,title=HANG (proved)%3A ")
    assert f"%0AIn {job['test']}.%0A" in shown
