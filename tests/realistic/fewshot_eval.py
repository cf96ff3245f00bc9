"""Few-shot episodes: prototypes per class, evaluated per domain on each worker."""
import random
from collections import defaultdict
from dataclasses import dataclass
from typing import Optional

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Config:
    classes: int = 6
    dim: int = 10
    per_class: int = 20
    shots: int = 3
    epochs: int = 3
    episodes: int = 8
    lr: float = 1e-2


class EpisodePool:
    def __init__(self, cfg, rank):
        g = torch.Generator().manual_seed(rank)
        self.cfg = cfg
        self.by_class = {c: c * 0.5 + torch.randn(cfg.per_class, cfg.dim, generator=g) for c in range(cfg.classes)}
        self.held_out = defaultdict(list)
        domains = ["sketch", "photo", "clipart"] if rank != 1 else ["sketch", "clipart"]
        for d in domains:
            self.held_out[d] = [(torch.randn(cfg.dim, generator=g), c) for c in range(cfg.classes)]
        self.rng = random.Random(rank)

    def episode(self):
        cs = self.rng.sample(sorted(self.by_class), 3)
        support = torch.stack([self.by_class[c][: self.cfg.shots] for c in cs])
        query = torch.stack([self.by_class[c][self.rng.randrange(self.cfg.shots, self.cfg.per_class)] for c in cs])
        return support, query, torch.arange(len(cs))


class Embedder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(cfg.dim, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, support, query):
        s = self.net(support.flatten(0, 1)).view(*support.shape[:2], -1).mean(1)
        return -torch.cdist(self.net(query), s)


@torch.no_grad()
def evaluate_domain(model, pool, domain) -> Optional[float]:
    samples = pool.held_out[domain]
    if not samples:
        return None
    protos = torch.stack([pool.by_class[c].mean(0) for _, c in samples])
    protos = model.module.net(protos)
    embedded = model.module.net(torch.stack([x for x, _ in samples]))
    hits = (torch.cdist(embedded, protos).argmin(1) == torch.arange(len(samples))).sum()
    stats = torch.tensor([float(hits), float(len(samples))])
    parts = [torch.zeros_like(stats) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, stats)
    hits, total = torch.stack(parts).sum(0).tolist()
    return hits / total


def train_epoch(model, optimizer, pool, cfg):
    total = 0.0
    for _ in range(cfg.episodes):
        support, query, target = pool.episode()
        loss = F.cross_entropy(model(support, query), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / cfg.episodes


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    pool = EpisodePool(cfg, rank)
    model = DDP(Embedder(cfg))
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)

    for epoch in range(cfg.epochs):
        loss = train_epoch(model, optimizer, pool, cfg)
        scores = {d: evaluate_domain(model, pool, d) for d in ("photo", "sketch", "clipart")}
        if rank == 0:
            print(f"epoch {epoch} loss {loss:.4f} " + " ".join(f"{k}={v}" for k, v in scores.items()), flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
