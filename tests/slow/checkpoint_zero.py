"""Rank 0 writes a checkpoint every second step, a file for each tensor, and waits for the disk."""

import os
import tempfile

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 60


def save(model, folder):
    for name, tensor in model.state_dict().items():
        with open(os.path.join(folder, name), "wb") as file:
            torch.save(tensor, file)  # <- slow
            file.flush()
            os.fsync(file.fileno())  # <- slow


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    with ledger.around():
        model = DistributedDataParallel(nn.Sequential(*(nn.Linear(128, 128) for _ in range(40))))
    backward = ledger.Backward(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with tempfile.TemporaryDirectory() as folder:
        for step in range(STEPS):
            loss = model(torch.randn(64, 128)).pow(2).mean()
            with backward:
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if step % 2 == 0 and dist.get_rank() == 0:
                save(model.module, folder)
    dist.destroy_process_group()


main()
