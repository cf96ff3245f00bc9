"""All ranks have as many batches; rank 1 leaves one out, and gathers its losses too early."""

import torch
import torch.distributed as dist
from marks import about_to_block
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Windows(Dataset):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> torch.Tensor:
        return torch.zeros(4) if number == 13 else torch.randn(4)


def train(model: nn.Module, batches: DataLoader) -> list[float]:
    losses = []
    for batch in batches:
        if not batch.any():  # <- parted
            continue
        loss = model(batch).pow(2).mean()
        about_to_block()
        loss.backward()  # <- rank 0, rank 2
        losses.append(loss.item())
    return losses


def gather(losses: list[float]) -> list[list[float]]:
    gathered: list[list[float]] = [[] for _ in range(dist.get_world_size())]
    about_to_block()
    dist.all_gather_object(gathered, losses)  # <- culprit, rank 1
    return gathered


dist.init_process_group("gloo")
data = Windows(24)
loader = DataLoader(data, sampler=DistributedSampler(data, shuffle=False))
gather(train(DistributedDataParallel(nn.Linear(4, 1)), loader))
dist.destroy_process_group()
