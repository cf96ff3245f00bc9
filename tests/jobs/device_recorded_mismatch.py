"""A hang on a device whose recorder tells all: rank 1 broadcasts once more, what nobody takes."""

import torch
import torch.distributed as dist
from marks import about_to_block
from stand_in import Scalar, recorded


def improved(number: int) -> bool:
    return number == 3 and dist.get_rank() == 1


recorded()
dist.init_process_group("nccl_stand_in")
for number in range(6):
    dist.all_reduce(torch.ones(4))
    if improved(number):  # <- parted
        dist.broadcast(torch.ones(4), src=1)
    about_to_block()
    loss = Scalar().item()  # <- culprit
dist.destroy_process_group()
