"""A healthy job: rank 1 computes in Python for a while, and rank 0 waits for it."""

import sys
import time

import torch.distributed as dist
import torch.multiprocessing as mp


def tokenize(seconds: float) -> int:
    total, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        total += sum(len(word) for word in ["a", "bc", "def"] * 1_000)
    return total


def prepare(rank: int, port: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    if rank == 1:
        tokenize(3.0)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(prepare, args=(sys.argv[1],), nprocs=2)
