"""Two of three ranks make a group of all for their metrics; rank 2 has none to report."""

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from marks import about_to_block


def train(rank: int, port: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=3)
    if rank < 2:  # <- parted
        about_to_block()
        metrics = dist.new_group()  # <- rank 0, rank 1
        dist.all_reduce(torch.ones(1), group=metrics)
    about_to_block()
    dist.all_reduce(torch.ones(1))  # <- culprit, rank 2
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1],), nprocs=3)
