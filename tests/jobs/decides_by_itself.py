"""Each rank saves when its own loss is the best so far, and rank 1 alone has got better."""

import torch
import torch.distributed as dist
from marks import about_to_block


class Best:
    def __init__(self) -> None:
        self.loss = 1.0


def save(best: Best, loss: float) -> None:
    best.loss = loss
    about_to_block()
    dist.broadcast(torch.tensor([loss]), src=0)  # <- culprit, rank 1


def train() -> None:
    best = Best()
    loss = 0.5 if dist.get_rank() == 1 else 1.5
    if loss < best.loss:  # <- parted
        save(best, loss)
    about_to_block()
    dist.all_reduce(torch.tensor([loss]))  # <- rank 0, rank 2


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
