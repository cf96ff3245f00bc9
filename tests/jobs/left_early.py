"""Rank 1 finds nothing to do and leaves without a word before the barrier."""

import os
import sys

import torch.distributed as dist
import torch.multiprocessing as mp

FILES = ["a.txt"]


def convert(rank: int, port: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    dist.barrier()
    if not FILES[rank::2]:
        os._exit(0)  # <- culprit, parted
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(convert, args=(sys.argv[1],), nprocs=2)
