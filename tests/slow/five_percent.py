"""Rank 0 prints and logs after each step, for a twentieth of the time."""

import time

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 60


def log(loss):
    time.sleep(0.012)  # a line to a log on a file server


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    model = nn.Linear(64, 64)
    for _ in range(STEPS):
        time.sleep(0.23)  # the step of a device
        loss = model(torch.randn(64, 64)).pow(2).mean()
        loss.backward()
        if dist.get_rank() == 0:
            log(loss)
        with ledger.around():
            dist.all_reduce(model.weight.grad)
        model.zero_grad()
    dist.destroy_process_group()


main()
