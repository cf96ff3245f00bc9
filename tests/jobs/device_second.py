"""A hang on the second of two devices: rank 1 leaves out the reduction of the loss there."""

import torch
import torch.distributed as dist
from marks import about_to_block
from stand_in import Scalar, set_device


def validate(group: dist.ProcessGroup, complete: bool) -> None:
    dist.all_reduce(torch.ones(4))
    if complete:
        dist.all_reduce(torch.ones(4), group=group)
    Scalar(device=0).item()
    dist.broadcast(torch.ones(4), src=0, group=group)
    about_to_block()
    Scalar(device=1).item()  # <- culprit, rank 0, rank 1


dist.init_process_group("stand_in")
set_device(1)
second = dist.new_group(group_desc="second")
for number in range(4):
    validate(second, number < 3 or dist.get_rank() == 0)
dist.destroy_process_group()
