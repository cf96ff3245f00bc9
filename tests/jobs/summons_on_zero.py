"""FSDP: rank 0 alone summons the full parameters; the others answer with their next forward pass."""

import torch
import torch.distributed as dist
from marks import about_to_block
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

dist.init_process_group("gloo")
layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
model = FullyShardedDataParallel(layers, device_id=torch.device("cpu"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(4):
    about_to_block()
    loss = model(torch.randn(4, 8)).pow(2).mean()  # <- rank 0
    about_to_block()
    loss.backward()  # <- rank 1, rank 2, rank 3
    optimizer.step()
    optimizer.zero_grad()
    if step == 2 and dist.get_rank() == 0:  # <- parted
        with FullyShardedDataParallel.summon_full_params(model):  # <- culprit
            print("norm", sum(p.norm() for p in model.parameters()))
dist.destroy_process_group()
