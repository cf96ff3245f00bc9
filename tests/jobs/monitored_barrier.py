"""Ranks 0 and 2 check at a monitored barrier who is there; rank 1 is in the next step already."""

import torch
import torch.distributed as dist
from marks import about_to_block


def check_everyone(step: int) -> None:
    if step == 2 and dist.get_rank() != 1:  # <- parted
        about_to_block()
        dist.monitored_barrier()  # <- rank 0, rank 2


def train() -> None:
    for step in range(4):
        check_everyone(step)
        gradient = torch.randn(4)
        about_to_block()
        dist.all_reduce(gradient)  # <- culprit, rank 1


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
