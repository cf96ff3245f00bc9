"""A job of one process, which nobody waits for."""

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 60


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    with ledger.around():
        model = DistributedDataParallel(nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512)))
    backward = ledger.Backward(model)
    for _ in range(STEPS):
        sum(number * number for number in range(1_000_000))
        with backward:
            model(torch.randn(512, 512)).pow(2).mean().backward()
        model.zero_grad()
    dist.destroy_process_group()


main()
