"""A healthy job: rank 1 computes for 15 s before its call, where rank 0 waits for its device."""

import time

import torch
import torch.distributed as dist
from stand_in import Scalar


def tokenize(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(10_000))


dist.init_process_group("stand_in")
for number in range(3):
    tokenize(15.0 if dist.get_rank() == 1 and number == 1 else 0.1)
    dist.all_reduce(torch.ones(4))
    loss = Scalar().item()
dist.destroy_process_group()
