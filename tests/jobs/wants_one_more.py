"""Rank 2 of three has one batch more than the others, which have come to their end."""

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank: int, port: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=3)
    for _ in range(5 if rank == 2 else 4):
        dist.all_reduce(torch.ones(1))  # <- culprit, rank 2


if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1],), nprocs=3)
