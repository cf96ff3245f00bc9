"""The group has a timeout of five seconds, and rank 1 unpacks its data for longer than that."""

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def unpacked(folder: Path) -> None:
    while not (folder / "done").exists():
        time.sleep(0.2)  # <- culprit, rank 1


def train(rank: int, port: str) -> None:
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=5),
    )
    if rank == 1:
        unpacked(Path(os.curdir))
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1],), nprocs=2)
