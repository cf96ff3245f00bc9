"""Two jobs with one port: rank 0 cannot listen there, and rank 1 becomes rank 1 of the other job."""

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def join(rank: int, port: str) -> None:
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)  # <- culprit


def train(rank: int, port: str) -> None:
    join(rank, port)
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1],), nprocs=2)
