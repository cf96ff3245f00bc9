"""One of four ranks skips the step whose loss is not finite, and the gradients of that step with it."""

import torch
import torch.distributed as dist
from marks import about_to_block


def step(weight: torch.Tensor, batch: torch.Tensor) -> None:
    loss = (batch * weight).mean()
    if not torch.isfinite(loss):
        return  # <- parted
    gradient = batch.mean(dim=0)
    dist.all_reduce(gradient)  # <- rank 0, rank 1, rank 3
    weight -= 0.1 * gradient


def train() -> None:
    weight = torch.zeros(4)
    for number in range(6):
        batch = torch.randn(8, 4)
        if dist.get_rank() == 2 and number == 5:
            batch[3, 1] = float("nan")
        about_to_block()
        step(weight, batch)
    about_to_block()
    dist.barrier()  # <- culprit, rank 2


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
