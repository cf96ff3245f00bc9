"""Each rank stops when its own loss no longer falls, and rank 2 is content first."""

import torch
import torch.distributed as dist
from marks import about_to_block
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def validate(model: nn.Module, step: int) -> float:
    shift = 0.0 if dist.get_rank() == 2 else 0.1 * (10 - step)
    return shift + model(torch.ones(1, 4)).abs().item() * 0


def save(model: nn.Module) -> None:
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), "model.pt")
    about_to_block()
    dist.barrier()  # <- culprit, rank 2


def train() -> None:
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    best, patience = float("inf"), 3
    for step in range(10):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).pow(2).mean()
        about_to_block()
        loss.backward()  # <- rank 0, rank 1
        optimizer.step()
        score = validate(model.module, step)
        best, patience = (score, 3) if score < best else (best, patience - 1)
        if patience == 0:  # <- parted
            break
    save(model.module)


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
