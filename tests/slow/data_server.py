"""Rank 0 makes every batch and broadcasts it to the others."""

import random

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 60


def make_batch(step):
    """Random walks, drawn in Python."""
    source = random.Random(step)
    walk = [0.0]
    while len(walk) < 128 * 256 * 2:
        walk.append(walk[-1] + source.gauss(0, 1))  # <- slow
    return torch.tensor(walk[: 128 * 256]).view(128, 256)


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    model = nn.Linear(256, 256)
    for step in range(STEPS):
        batch = make_batch(step) if dist.get_rank() == 0 else torch.empty(128, 256)
        with ledger.around():
            dist.broadcast(batch, src=0)
        model(batch).pow(2).mean().backward()
        with ledger.around():
            dist.all_reduce(model.weight.grad)
        model.weight.data -= 1e-6 * model.weight.grad
        model.zero_grad()
    dist.destroy_process_group()


main()
