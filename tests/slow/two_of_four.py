"""Four ranks, two of which read from the machine that is far away."""

import time

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 60


def fetch(far):
    """Read a batch; a stand-in for a request to a file server."""
    time.sleep(0.25 if far else 0.15)  # <- slow
    return torch.randn(32, 64)


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    model = nn.Linear(64, 64)
    far = dist.get_rank() in (2, 3)
    for _ in range(STEPS):
        model(fetch(far)).pow(2).mean().backward()
        with ledger.around():
            dist.all_reduce(model.weight.grad)
        model.weight.data -= 0.01 * model.weight.grad
        model.zero_grad()
    dist.destroy_process_group()


main()
