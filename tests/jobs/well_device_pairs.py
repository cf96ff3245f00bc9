"""A healthy job: pairs reduce in groups of their own, one of them behind a kernel of 20 s."""

import torch
import torch.distributed as dist
from stand_in import Scalar, kernel

dist.init_process_group("stand_in")
pairs = [dist.new_group([first, first + 1], group_desc=f"pair {first}") for first in (0, 2)]
pair = pairs[dist.get_rank() // 2]
for number in range(3):
    kernel(20.0 if number == 1 and dist.get_rank() == 3 else 0.3)
    dist.all_reduce(torch.ones(4), group=pair)
    if number == 1 and dist.get_rank() < 2:
        loss = Scalar().item()
    dist.all_reduce(torch.ones(4))
    loss = Scalar().item()
dist.destroy_process_group()
