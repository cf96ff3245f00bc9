"""A sharded model: rank 0 alone gathers the whole state to save it, and all meet at a barrier."""

import torch
import torch.distributed as dist
from marks import about_to_block
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def build() -> nn.Module:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    for part in (model[0], model[2], model):
        fully_shard(part, mesh=mesh)
    return model


def save(model: nn.Module) -> None:
    if dist.get_rank() == 0:  # <- parted
        about_to_block()
        state = {}
        for name, value in model.state_dict().items():
            state[name] = value.full_tensor()  # <- culprit, rank 0
        torch.save(state, "model.pt")
    about_to_block()
    dist.barrier()  # <- rank 1, rank 2


def train() -> None:
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        model(torch.randn(4, 8)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    save(model)


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
