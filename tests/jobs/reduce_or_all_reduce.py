"""Rank 0 sends its loss to itself with `reduce`, while the others take part in an `all_reduce`."""

import torch
import torch.distributed as dist
from marks import about_to_block


def log_loss(loss: torch.Tensor) -> float:
    about_to_block()
    if dist.get_rank() == 0:  # <- parted
        dist.reduce(loss, dst=0)  # <- culprit, rank 0
        print(f"loss {loss.item() / dist.get_world_size():.3f}")
    else:
        dist.all_reduce(loss)  # <- rank 1, rank 2
    return loss.item()


def train() -> None:
    weight = torch.zeros(8)
    for step in range(20):
        gradient = torch.randn(8)
        dist.all_reduce(gradient)
        weight -= 0.1 * gradient
        if step % 10 == 9:
            log_loss(weight.norm().reshape(1))


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
