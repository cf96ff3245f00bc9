"""A hang on a device: rank 0 broadcasts once more; both ranks wait where they read the loss."""

import torch
import torch.distributed as dist
from marks import about_to_block
from stand_in import Scalar


def step(number: int, loss: Scalar) -> float:
    if number == 4 and dist.get_rank() == 0:  # <- parted
        dist.broadcast(torch.ones(4), src=0)
    dist.all_reduce(torch.ones(4))
    about_to_block()
    return loss.item()  # <- culprit, rank 0, rank 1


dist.init_process_group("stand_in")
for number in range(6):
    step(number, Scalar())
dist.destroy_process_group()
