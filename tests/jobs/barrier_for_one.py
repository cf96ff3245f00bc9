"""Only rank 0 comes to the barrier after the validation; rank 1 is in the next step already."""

import torch
import torch.distributed as dist
from marks import about_to_block


def validate() -> None:
    if dist.get_rank() == 0:  # <- parted
        print("validating")
        about_to_block()
        dist.barrier()  # <- culprit, rank 0


def train() -> None:
    for step in range(6):
        gradient = torch.ones(1)
        if step == 3:
            validate()
            about_to_block()
        dist.all_reduce(gradient)  # <- rank 1


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
