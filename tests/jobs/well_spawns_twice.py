"""A healthy job: one program spawns its ranks to train, and spawns them anew to test."""

import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank: int, port: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    for _ in range(3):
        time.sleep(0.7)
        dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=(sys.argv[1],), nprocs=2)
    mp.spawn(run, args=(sys.argv[1],), nprocs=2)
