"""One rank asks a service for its rewards, with a pause between attempts."""

import time

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 50


def rewards(batch):
    if dist.get_rank() == 0:
        time.sleep(0.25)  # <- slow
    return batch.sum(dim=1)


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    policy = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 1))
    for _ in range(STEPS):
        batch = torch.randn(1024, 64)
        loss = -(policy(batch).squeeze(1) * rewards(batch)).mean()
        loss.backward()
        for parameter in policy.parameters():
            with ledger.around():
                dist.all_reduce(parameter.grad)
            parameter.data -= 1e-4 * parameter.grad
        policy.zero_grad()
    dist.destroy_process_group()


main()
