import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

dist.init_process_group("gloo")
layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
model = FullyShardedDataParallel(layers, device_id=torch.device("cpu"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(4):
    loss = model(torch.randn(4, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == 2:
        with FullyShardedDataParallel.summon_full_params(model):
            print("norm", sum(p.norm() for p in model.parameters()))
dist.destroy_process_group()
