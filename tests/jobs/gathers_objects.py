"""Only the ranks that have found bad samples gather them on rank 0."""

import torch
import torch.distributed as dist
from marks import about_to_block


def report_bad(bad: list[int]) -> None:
    gathered = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    about_to_block()
    dist.gather_object(bad, gathered, dst=0)  # <- rank 0, rank 1


def train() -> None:
    for step in range(5):
        gradient = torch.randn(4)
        about_to_block()
        dist.all_reduce(gradient)  # <- culprit, rank 2
        bad = [step] if dist.get_rank() < 2 and step == 2 else []
        if bad:  # <- parted
            report_bad(bad)


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
