"""Rank 0 unpacks the data set for three seconds at the start, while the others wait at a barrier."""

import time

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 190


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    if dist.get_rank() == 0:
        time.sleep(3)  # a stand-in for unpacking
    with ledger.around():
        dist.barrier()
    model = nn.Linear(64, 64)
    for _ in range(STEPS):
        time.sleep(0.2)
        model(torch.randn(64, 64)).pow(2).mean().backward()
        with ledger.around():
            dist.all_reduce(model.weight.grad)
        model.zero_grad()
    dist.destroy_process_group()


main()
