"""A healthy job: the first step of each rank is slow, as when it compiles its model."""

import time

import torch
import torch.distributed as dist


def step(number: int) -> None:
    end = time.monotonic() + (8.0 + 4.0 * dist.get_rank() if number == 0 else 0.0)
    while time.monotonic() < end:
        torch.randn(64, 64) @ torch.randn(64, 64)
    dist.all_reduce(torch.ones(1))


dist.init_process_group("gloo")
for number in range(50):
    step(number)
dist.destroy_process_group()
