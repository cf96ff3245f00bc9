"""Rank 0 alone comes to the barrier inside `save`, which meets the next barrier of the others."""

import torch
import torch.distributed as dist
from marks import about_to_block


def save() -> None:
    if dist.get_rank() == 0:  # <- parted
        dist.barrier()  # <- culprit


def train() -> None:
    for step in range(4):
        about_to_block()
        dist.all_reduce(torch.ones(4))  # <- rank 1
        if step == 1:
            save()
        about_to_block()
        dist.barrier()  # <- rank 0


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
