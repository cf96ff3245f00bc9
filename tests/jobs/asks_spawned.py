"""A spawned rank asks a question. Its standard input is the null device, so it reads an end at once."""

import sys

import torch.distributed as dist
import torch.multiprocessing as mp


def overwrite() -> bool:
    return input("overwrite the results? ") == "y"  # <- culprit


def train(rank: int, port: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    dist.barrier()
    if rank == 0:
        overwrite()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1],), nprocs=2)
