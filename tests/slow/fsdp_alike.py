"""A model sharded by FSDP2 over two ranks, which do the same work."""

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

STEPS = 150


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        batch = torch.randn(512, 512)
        with ledger.around():
            loss = model(batch).pow(2).mean()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


main()
