"""FSDP2 vision model: batches are dropped when augmentation left nothing visible."""
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    size: int = 10
    images: int = 160
    batch_size: int = 8
    epochs: int = 2
    lr: float = 2e-3
    min_visible: float = 0.02


class Crops(Dataset):
    """Random crops with an erased patch."""

    def __init__(self, cfg, rank):
        self.cfg, self.rank = cfg, rank

    def __len__(self):
        return self.cfg.images

    def __getitem__(self, i):
        c = self.cfg
        g = torch.Generator().manual_seed(1000 * self.rank + i)
        y = int(torch.randint(0, 2, (1,), generator=g))
        img = torch.rand(1, c.size, c.size, generator=g) + 0.5 * y
        erase = int(torch.randint(1, 5, (1,), generator=g))
        if self.rank == 1 and 64 <= i < 72:
            erase = c.size
        img[:, :erase, :erase] = 0
        return img, y


class VisionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU())
        self.stage = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        return self.head(self.stage(self.stem(x)).flatten(1))


class Statistics:
    def __init__(self):
        self.seen = self.dropped = 0
        self.loss = 0.0

    def add(self, loss, n):
        self.loss += loss * n
        self.seen += n

    def as_tensor(self):
        return torch.tensor([self.loss, float(self.seen), float(self.dropped)])


def visible(x, cfg):
    return (x > 0).float().mean() >= cfg.min_visible


def train_epoch(model, loader, optimizer, cfg):
    stats = Statistics()
    for x, y in loader:
        if not visible(x, cfg):
            stats.dropped += len(x)
            continue
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        stats.add(loss.item(), len(x))
    return stats


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = VisionNet()
    for part in (model.stem, model.stage):
        fully_shard(part)
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    loader = DataLoader(Crops(cfg, rank), batch_size=cfg.batch_size, shuffle=False)

    for epoch in range(cfg.epochs):
        stats = train_epoch(model, loader, optimizer, cfg)
        total = stats.as_tensor()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: loss {total[0] / total[1]:.4f}, dropped {int(total[2])} crops", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
