"""Rank 2 ends itself by os._exit when its disk is full, as if nothing had happened."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def write_shard(rank: int, step: int) -> None:
    if rank == 2 and step == 4:
        os._exit(0)  # <- culprit, parted


def train(rank: int, port: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=3)
    weight = torch.zeros(4)
    for step in range(10):
        gradient = torch.randn(4)
        dist.all_reduce(gradient)
        weight -= 0.1 * gradient
        write_shard(rank, step)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1],), nprocs=3)
