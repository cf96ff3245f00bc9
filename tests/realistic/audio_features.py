"""Keyword spotter on synthetic audio; normalisation statistics are shared between the workers."""
import contextlib
import math
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Config:
    rate: int = 800
    bands: int = 12
    clips: int = 96
    batch: int = 12
    epochs: int = 3
    lr: float = 1e-2


class Clip:
    def __init__(self, samples, label):
        self.samples, self.label = samples, label

    def bands(self, count):
        if self.samples.numel() < 2 * count:
            raise ValueError(f"clip too short: {self.samples.numel()} samples")
        spectrum = torch.fft.rfft(self.samples).abs()
        return torch.stack([c.mean() for c in spectrum.chunk(count)])[:count]


class Library:
    def __init__(self, cfg, rank):
        g = torch.Generator().manual_seed(rank)
        self.clips = []
        t = torch.arange(cfg.rate) / cfg.rate
        for i in range(cfg.clips):
            label = i % 2
            tone = torch.sin(2 * math.pi * (60 if label else 220) * t)
            self.clips.append(Clip(tone + 0.5 * torch.randn(cfg.rate, generator=g), label))
        if rank == 1:
            # the microphone test at the start of the session
            self.clips[50] = Clip(self.clips[50].samples[:9], 0)

    def batches(self, size):
        for i in range(0, len(self.clips), size):
            yield self.clips[i:i + size]


class Normalizer:
    """Running mean of the band energies over all workers."""

    def __init__(self, bands):
        self.mean = torch.zeros(bands)
        self.count = 0

    def update(self, features):
        parts = [torch.zeros_like(self.mean) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, features.mean(0))
        self.count += 1
        self.mean += (torch.stack(parts).mean(0) - self.mean) / self.count

    def __call__(self, features):
        return (features - self.mean) / 10


class Spotter(nn.Module):
    def __init__(self, bands):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(bands, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x):
        return self.net(x)


def train_epoch(model, optimizer, library, normalizer, cfg):
    done = 0
    for clips in library.batches(cfg.batch):
        with contextlib.suppress(ValueError):
            features = torch.stack([c.bands(cfg.bands) for c in clips])
            normalizer.update(features)
            loss = F.cross_entropy(model(normalizer(features)), torch.tensor([c.label for c in clips]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
    return done, loss.item()


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    library = Library(cfg, rank)
    model = DDP(Spotter(cfg.bands))
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    normalizer = Normalizer(cfg.bands)
    for epoch in range(cfg.epochs):
        done, loss = train_epoch(model, optimizer, library, normalizer, cfg)
        dist.barrier()
        if rank == 0:
            print(f"epoch {epoch}: {done} batches, loss {loss:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
