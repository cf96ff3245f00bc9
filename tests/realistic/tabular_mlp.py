"""Tabular regression with DDP and a guard against non-finite losses."""
import math
import os
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


@dataclass
class TrainConfig:
    rows: int = 512
    features: int = 12
    hidden: int = 64
    batch_size: int = 16
    epochs: int = 2
    lr: float = 1e-3
    clip: float = 1.0
    log_every: int = 4
    broken_rows: tuple = field(default=(101, 203))


class SensorTable(Dataset):
    """Synthetic sensor readings; a few rows come with a dead sensor."""

    def __init__(self, cfg: TrainConfig):
        g = torch.Generator().manual_seed(11)
        self.x = torch.randn(cfg.rows, cfg.features, generator=g)
        w = torch.randn(cfg.features, 1, generator=g)
        self.y = self.x @ w + 0.1 * torch.randn(cfg.rows, 1, generator=g)
        for row in cfg.broken_rows:
            self.x[row, 3] = float("nan")

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Meter:
    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def mean(self):
        return self.sum / max(1, self.count)


class Trainer:
    def __init__(self, cfg: TrainConfig, rank: int, world_size: int):
        self.cfg, self.rank, self.world_size = cfg, rank, world_size
        table = SensorTable(cfg)
        self.sampler = DistributedSampler(table, world_size, rank, shuffle=False, drop_last=True)
        self.loader = DataLoader(table, batch_size=cfg.batch_size, sampler=self.sampler)
        net = nn.Sequential(
            nn.Linear(cfg.features, cfg.hidden), nn.GELU(),
            nn.Linear(cfg.hidden, cfg.hidden), nn.GELU(),
            nn.Linear(cfg.hidden, 1))
        self.model = DDP(net)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.loss_fn = nn.MSELoss()
        self.skipped = 0
        self.step = 0

    def train_epoch(self, epoch):
        self.sampler.set_epoch(epoch)
        meter = Meter()
        for x, y in self.loader:
            pred = self.model(x)
            loss = self.loss_fn(pred, y)
            if not torch.isfinite(loss):
                self.skipped += 1
                self.opt.zero_grad(set_to_none=True)
                continue
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
            self.opt.step()
            self.opt.zero_grad(set_to_none=True)
            meter.update(loss.item(), len(x))
            self.step += 1
            if self.step % self.cfg.log_every == 0 and self.rank == 0:
                print(f"epoch {epoch} step {self.step} loss {meter.mean:.4f}", flush=True)
        return meter

    def summarize(self, epoch, meter):
        stats = torch.tensor([meter.sum, float(meter.count), float(self.skipped)], dtype=torch.float64)
        out = [torch.zeros_like(stats) for _ in range(self.world_size)]
        dist.all_gather(out, stats)
        total = torch.stack(out).sum(0)
        if self.rank == 0:
            rmse = math.sqrt(total[0].item() / max(1.0, total[1].item()))
            print(f"== epoch {epoch}: rmse {rmse:.4f} rows {int(total[1])} skipped {int(total[2])}", flush=True)

    def fit(self):
        for epoch in range(self.cfg.epochs):
            meter = self.train_epoch(epoch)
            self.summarize(epoch, meter)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    trainer = Trainer(TrainConfig(), dist.get_rank(), dist.get_world_size())
    trainer.fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
