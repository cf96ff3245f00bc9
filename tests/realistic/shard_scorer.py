"""Scores files from a list with a broadcast model; workers take the files of their own list."""
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn


@dataclass
class Config:
    files: int = 17
    rows: int = 50
    dim: int = 6
    refresh_every: int = 3


class Inbox:
    """Files waiting to be scored by this worker."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.pending = sorted(directory.glob("*.pt"))

    def take(self):
        return self.pending.pop(0)

    def __bool__(self):
        return bool(self.pending)


class Scorer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Linear(dim, 1)

    def refresh(self):
        """The parameters are maintained by the first worker."""
        for p in self.parameters():
            dist.broadcast(p.data, src=0)

    def forward(self, x):
        return self.net(x).sigmoid().squeeze(-1)


class Summary:
    def __init__(self):
        self.rows, self.total = 0, 0.0

    def add(self, scores):
        self.rows += len(scores)
        self.total += scores.sum().item()

    def merged(self):
        t = torch.tensor([self.rows, self.total], dtype=torch.float64)
        dist.all_reduce(t)
        return int(t[0]), (t[1] / t[0]).item()


def deliver(cfg, root, rank, world):
    """Writes the input files of this worker."""
    box = root / f"inbox{rank}"
    box.mkdir()
    g = torch.Generator().manual_seed(rank)
    for i in range(rank, cfg.files, world):
        torch.save(torch.randn(cfg.rows, cfg.dim, generator=g), box / f"{i:03d}.pt")
    return box


def process(scorer, inbox, summary, cfg):
    rounds = 0
    while True:
        if not inbox:
            print(f"rank {dist.get_rank()}: inbox empty after {rounds} files", flush=True)
            sys.exit(0)
        if rounds % cfg.refresh_every == 0:
            scorer.refresh()
        with torch.no_grad():
            summary.add(scorer(torch.load(inbox.take(), weights_only=True)))
        rounds += 1
        rows, mean = summary.merged()
        if dist.get_rank() == 0:
            print(f"{rows} rows scored, mean {mean:.4f}", flush=True)


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    with tempfile.TemporaryDirectory() as tmp:
        inbox = Inbox(deliver(cfg, Path(tmp), rank, world))
        process(Scorer(cfg.dim), inbox, Summary(), cfg)


if __name__ == "__main__":
    main()
