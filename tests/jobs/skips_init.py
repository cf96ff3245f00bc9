"""Rank 1 waits for a file before it joins, but nobody but itself would write that file later."""

import os
import time
from pathlib import Path

import torch
import torch.distributed as dist


def wait_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.5)  # <- culprit, rank 1


if os.environ["RANK"] == "1":  # <- parted
    wait_for(Path("vocabulary.txt"))
dist.init_process_group("gloo")  # <- rank 0
Path("vocabulary.txt").write_text("a b c")
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
