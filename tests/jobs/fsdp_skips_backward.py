"""A sharded model: rank 1 skips the backward pass of a batch without labels."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def build() -> nn.Module:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    fully_shard(model[0], mesh=mesh)
    fully_shard(model[2], mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def train() -> None:
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(4):
        loss = model(torch.randn(4, 8)).pow(2).mean()
        if step == 2 and dist.get_rank() == 1:
            continue
        loss.backward()  # <- culprit
        optimizer.step()
        optimizer.zero_grad()


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
