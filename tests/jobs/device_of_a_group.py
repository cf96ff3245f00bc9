"""A hang on a device: rank 3 leaves out the reduction of its pair, before one of all ranks."""

import torch
import torch.distributed as dist
from marks import about_to_block
from stand_in import Scalar


def step(number: int, pair: dist.ProcessGroup) -> float:
    if number != 4 or dist.get_rank() != 3:
        dist.all_reduce(torch.ones(4), group=pair)
    dist.all_reduce(torch.ones(4))
    about_to_block()
    return Scalar().item()  # <- culprit, rank 0, rank 1, rank 2, rank 3


dist.init_process_group("stand_in")
pairs = [dist.new_group([first, first + 1], group_desc=f"pair {first}") for first in (0, 2)]
for number in range(6):
    step(number, pairs[dist.get_rank() // 2])
dist.destroy_process_group()
