"""Rank 0 writes a checkpoint every second step, and waits until the disk has it."""

import os
import tempfile

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 50


def save(model, path):
    with open(path, "wb") as file:
        torch.save(model.state_dict(), file)  # <- slow
        file.flush()
        os.fsync(file.fileno())  # <- slow


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    model = DistributedDataParallel(nn.Sequential(nn.Linear(1024, 1024), nn.Linear(1024, 1024)))
    backward = ledger.Backward(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with tempfile.TemporaryDirectory() as folder:
        for step in range(STEPS):
            loss = model(torch.randn(64, 1024)).pow(2).mean()
            with backward:
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if step % 2 == 0 and dist.get_rank() == 0:
                save(model.module, os.path.join(folder, "last.pt"))
    dist.destroy_process_group()


main()
