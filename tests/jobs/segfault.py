"""A C extension of rank 1 reads through a null pointer."""

import ctypes
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def tokenize(rank: int) -> torch.Tensor:
    if rank == 1:
        ctypes.string_at(0)  # <- culprit
    return torch.ones(4)


def train(rank: int, port: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    dist.barrier()
    dist.all_reduce(tokenize(rank))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1],), nprocs=2)
