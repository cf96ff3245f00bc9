"""A hang on a device: a barrier that only rank 0 calls, where rank 1 reads the loss."""

import torch
import torch.distributed as dist
from marks import about_to_block
from stand_in import Scalar


def save() -> None:
    about_to_block()
    dist.barrier()  # <- culprit, rank 0


dist.init_process_group("stand_in")
for number in range(4):
    dist.all_reduce(torch.ones(4))
    if number == 2 and dist.get_rank() == 0:  # <- parted
        save()
    dist.all_reduce(torch.ones(4))
    about_to_block()
    loss = Scalar().item()  # <- rank 1
dist.destroy_process_group()
