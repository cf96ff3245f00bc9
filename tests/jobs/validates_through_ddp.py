"""Rank 0 alone validates through the DDP wrapper, whose forward broadcasts the batch norm's buffers."""

import torch
import torch.distributed as dist
from marks import about_to_block
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def validate(model: nn.Module) -> None:
    model.eval()
    loss = model(torch.randn(16, 4)).pow(2).mean()  # <- culprit
    model.train()
    print(f"validation loss {loss.item():.3f}")


def train() -> None:
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(4):
        optimizer.zero_grad()
        about_to_block()
        loss = model(torch.randn(16, 4)).pow(2).mean()  # <- rank 0
        about_to_block()
        loss.backward()  # <- rank 1
        optimizer.step()
        if step == 1 and dist.get_rank() == 0:  # <- parted
            validate(model)


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
