"""One process of the instrument for each task, as where Slurm starts one for each rank."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

from helpers.launch.processes import free_port

pytestmark = [pytest.mark.real, pytest.mark.nightly]

PROGRAM = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
for step in range(50):
    dist.all_reduce(torch.ones(4))
    if step == 20 and rank == 1:
        dist.barrier()
"""


def test_ranks_of_one_machine_with_an_instrument_each_are_judged_together(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    records = tmp_path / "records"
    records.mkdir()
    port = free_port()
    tools = []
    for rank in range(2):
        task = {"SLURM_STEP_ID": "0", "SLURM_NTASKS": "2", "SLURM_PROCID": str(rank)}
        ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
        store = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
        command = (
            *(sys.executable, "-m", "helpers", "diagnose", "--patience", "3", "--max-seconds", "20"),
            *("--json", str(tmp_path / f"{rank}.json"), "--record", str(records), "--"),
            *(sys.executable, "train.py"),
        )
        env = {**os.environ, **task, **ranks, **store, "PYTHONPATH": str(ROOT)}
        tools.append(subprocess.Popen(command, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL))
    for rank, tool in enumerate(tools):
        tool.wait(120)
        alone = json.loads((tmp_path / f"{rank}.json").read_text())
        assert alone["culprits"] == [], alone["summary"]
        assert [view["state"] for view in alone["ranks"]][1 - rank] == "unseen"
    whole = tmp_path / "read.json"
    read = (sys.executable, "-m", "helpers", "read", "--json", str(whole), str(records))
    assert subprocess.run(read, cwd=ROOT, check=False, capture_output=True).returncode == 2
    report = json.loads(whole.read_text())
    assert (report["cause"], report["proved"], report["culprits"]) == (
        "collective-mismatch",
        True,
        [0, 1],
    )
    assert report["parting"]["source"] == "if step == 20 and rank == 1:"
    assert {(view["node"], view["host"]) for view in report["ranks"]} == {(0, socket.gethostname())}
    assert report["job"]["nodes_seen"] == 1
