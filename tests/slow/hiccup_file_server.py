"""Equal steps for 65 s; once, a file server lets one rank wait for five."""

import time

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 300


def read(step):
    late = step == 140 and dist.get_rank() == 1
    time.sleep(5.2 if late else 0.2)
    return torch.randn(64, 64)


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    model = nn.Linear(64, 64)
    for step in range(STEPS):
        model(read(step)).pow(2).mean().backward()
        with ledger.around():
            dist.all_reduce(model.weight.grad)
        model.zero_grad()
    dist.destroy_process_group()


main()
