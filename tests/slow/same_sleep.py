"""All ranks ask the same service, and wait as long for it."""

import time

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 60


def rewards(batch):
    time.sleep(0.2)
    return batch.sum(dim=1)


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    policy = nn.Linear(64, 1)
    for _ in range(STEPS):
        batch = torch.randn(256, 64)
        (policy(batch).squeeze(1) * rewards(batch)).mean().backward()
        with ledger.around():
            dist.all_reduce(policy.weight.grad)
        policy.zero_grad()
    dist.destroy_process_group()


main()
