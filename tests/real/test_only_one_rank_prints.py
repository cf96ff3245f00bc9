"""What only some ranks have printed is told, and what the sentences to paste are, of a real run."""

from __future__ import annotations

import sys

import pytest
from command_line import Box

pytestmark = [pytest.mark.real, pytest.mark.nightly]

TRAINS = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
print("rank", rank, "is ready", flush=True)
for step in range(12):
    loss = torch.ones(3) * (rank + 1)
    dist.all_reduce(loss)
    print(f"step {step}: loss {1 / (step + rank + 1):.3f}", flush=True)
    if step == 9 and rank == 1:
        print("the disk is full, stopping early", flush=True)
        break
dist.barrier()
"""


def test_what_only_one_rank_has_printed_is_told(box: Box) -> None:
    box.write("train.py", TRAINS)
    launch = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    done = box.run(*launch, "train.py", options=["--brief"])
    assert done.code == 2
    assert done.report["printed"] == [{"ranks": [1], "text": "the disk is full, stopping early"}]
    lines = done.out.splitlines()
    assert lines[0] == "HANG (proved): collective-mismatch" and len(lines) <= 8
    assert 'Printed only by: rank 1: "the disk is full, stopping early"' in lines
    assert any(line.startswith("Decided by: train.py:10  if step == 9 and rank == 1:") for line in lines)
