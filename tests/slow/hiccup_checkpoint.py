"""Equal steps for 65 s; halfway, rank 0 writes the only checkpoint, for five."""

import time

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 300


def write(state, seconds):
    """Write blocks to a slow file system."""
    for _ in range(seconds * 10):
        time.sleep(0.1)


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    with ledger.around():
        model = DistributedDataParallel(nn.Linear(64, 64))
    backward = ledger.Backward(model)
    for step in range(STEPS):
        time.sleep(0.2)
        with backward:
            model(torch.randn(64, 64)).pow(2).mean().backward()
        model.zero_grad()
        if step == STEPS // 2 and dist.get_rank() == 0:
            write(model.state_dict(), seconds=5)
    dist.destroy_process_group()


main()
