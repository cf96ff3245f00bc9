"""Ranks that a fork server starts: they bear its command line."""

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank: int, port: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    for _ in range(20):
        dist.all_reduce(torch.ones(1000))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(train, args=(sys.argv[1],), nprocs=2, start_method="forkserver")
