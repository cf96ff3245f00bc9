"""Rank 1 runs under a limit on its memory and collects its data into one list."""

import resource
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def collect(rank: int) -> int:
    kept = []
    for _ in range(2 if rank == 0 else 2_000):
        kept.append(bytearray(64 * 2**20))  # <- culprit
    return len(kept)


def train(rank: int, port: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    if rank == 1:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 256 * 2**20, resource.RLIM_INFINITY))
    dist.all_reduce(torch.tensor(collect(rank)))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1],), nprocs=2)
