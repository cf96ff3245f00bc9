"""One rank loads its data for three seconds before it joins; then all are as fast."""

import os
import time

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 60


def main():
    if os.environ["RANK"] == "1":
        time.sleep(3)  # a stand-in for reading a data set from far away
    dist.init_process_group("gloo")
    ledger.joined()
    model = nn.Linear(64, 64)
    for _ in range(STEPS):
        time.sleep(0.2)
        model(torch.randn(64, 64)).pow(2).mean().backward()
        with ledger.around():
            dist.all_reduce(model.weight.grad)
        model.zero_grad()
    dist.destroy_process_group()


main()
