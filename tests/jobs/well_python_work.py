"""A healthy job: rank 1 tokenizes in Python for 20 s before the others' barrier."""

import time

import torch.distributed as dist


def tokenize(seconds: float) -> int:
    total, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        total += sum(len(word) for word in ["a", "bc", "def"] * 1_000)
    return total


dist.init_process_group("gloo")
if dist.get_rank() == 1:
    tokenize(20.0)
dist.barrier()
dist.destroy_process_group()
