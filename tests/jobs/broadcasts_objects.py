"""Rank 0 broadcasts its new settings as soon as it has changed them; nobody else knows of it."""

import torch
import torch.distributed as dist
from marks import about_to_block


def share(settings: dict[str, float]) -> dict[str, float]:
    box = [settings]
    about_to_block()
    dist.broadcast_object_list(box, src=0)  # <- culprit, rank 0
    return box[0]


def train() -> None:
    settings = {"lr": 0.1}
    for step in range(5):
        gradient = torch.randn(64)
        if step == 3 and dist.get_rank() == 0:  # <- parted
            settings = share(settings)
        about_to_block()
        dist.all_reduce(gradient)  # <- rank 1, rank 2


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
