"""Rank 1 meets a broken batch, and the handler has a call of its own."""

import torch
import torch.distributed as dist
from marks import about_to_block


def load(rank: int) -> torch.Tensor:
    if rank == 1:
        raise ValueError("batch 7 is empty")  # <- culprit
    return torch.ones(4)


def step() -> None:
    try:  # <- parted
        batch = load(dist.get_rank())
        about_to_block()
        dist.all_reduce(batch)  # <- rank 0
    except ValueError:
        about_to_block()
        dist.barrier()  # <- rank 1


dist.init_process_group("gloo")
step()
dist.destroy_process_group()
