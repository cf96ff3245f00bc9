import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def validate(model: nn.Module) -> None:
    model.eval()
    loss = model(torch.randn(16, 4)).pow(2).mean()
    model.train()
    print(f"validation loss {loss.item():.3f}")


def train() -> None:
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(4):
        optimizer.zero_grad()
        loss = model(torch.randn(16, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        if step == 1 and dist.get_rank() == 0:
            validate(model)


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
