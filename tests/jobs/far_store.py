"""Both ranks look for the store at an address that nobody can reach."""

import os

import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank: int) -> None:
    os.environ.update(MASTER_ADDR="192.0.2.17", MASTER_PORT="29500", RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo")  # <- culprit, rank 0, rank 1
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, nprocs=2)
