"""Experts on three ranks exchange tokens; rank 1 has none in this step and skips the exchange."""

import torch
import torch.distributed as dist
from marks import about_to_block


def exchange(tokens: torch.Tensor) -> torch.Tensor:
    received = torch.empty_like(tokens)
    about_to_block()
    dist.all_to_all_single(received, tokens)  # <- rank 0, rank 2
    return received


def train() -> None:
    for step in range(4):
        tokens = torch.randn(6, 4)
        if step != 2 or dist.get_rank() != 1:  # <- parted
            tokens = exchange(tokens)
        loss = tokens.pow(2).mean().reshape(1)
        about_to_block()
        dist.all_reduce(loss)  # <- culprit, rank 1


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
