"""A hang on a device: rank 1 skips a step whose loss is not finite, and is one reduction behind."""

import torch
import torch.distributed as dist
from marks import about_to_block
from stand_in import Scalar


def is_finite(number: int) -> bool:
    return number != 2 or dist.get_rank() != 1


def evaluate() -> float:
    dist.broadcast(torch.ones(4), src=0)
    about_to_block()
    return Scalar().item()  # <- rank 1


dist.init_process_group("stand_in")
for number in range(5):
    if not is_finite(number):  # <- parted
        continue
    dist.all_reduce(torch.ones(4))
    about_to_block()
    loss = Scalar().item()  # <- culprit, rank 0
score = evaluate()
dist.destroy_process_group()
