import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def validate(model: nn.Module, step: int) -> float:
    shift = 0.0 if dist.get_rank() == 2 else 0.1 * (10 - step)
    return shift + model(torch.ones(1, 4)).abs().item() * 0


def save(model: nn.Module) -> None:
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), "model.pt")
    dist.barrier()


def train() -> None:
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    best, patience = float("inf"), 3
    for step in range(10):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        score = torch.tensor(validate(model.module, step))
        dist.all_reduce(score)
        best, patience = (score, 3) if score < best else (best, patience - 1)
        if patience == 0:
            break
    save(model.module)


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
