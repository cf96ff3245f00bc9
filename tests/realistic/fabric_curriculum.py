"""Curriculum learning with Fabric: raise the difficulty when the current level is mastered."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.fabric import Fabric


@dataclass
class Config:
    length: int = 10
    hidden: int = 24
    batch: int = 32
    levels: int = 4
    mastered: float = 0.80
    max_steps: int = 300
    report_every: int = 20
    lr: float = 1e-2


class Task:
    """Count the ones in the first `level` positions; the noise differs between the data sources."""

    def __init__(self, cfg, source):
        self.cfg = cfg
        self.noise = (0.05, 0.45)[source % 2]
        self.gen = torch.Generator().manual_seed(100 + source)

    def batch(self, level):
        bits = (torch.rand(self.cfg.batch, self.cfg.length, generator=self.gen) > 0.5).float()
        y = (bits[:, : level + 1].sum(1) > (level + 1) / 2).long()
        x = bits + self.noise * torch.randn(bits.shape, generator=self.gen)
        return x, y


class Mastery:
    """Exponential mean of the accuracy on the level."""

    def __init__(self, threshold):
        self.threshold = threshold
        self.value = 0.0

    def update(self, hits):
        self.value = 0.8 * self.value + 0.2 * hits.float().mean().item()

    def reached(self):
        return self.value >= self.threshold


def train_level(fabric, model, optimizer, task, level, cfg):
    mastery = Mastery(cfg.mastered)
    steps = 0
    while not mastery.reached():
        if steps >= cfg.max_steps:
            raise RuntimeError(f"level {level} was not mastered in {steps} steps")
        x, y = task.batch(level)
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        optimizer.zero_grad()
        fabric.backward(loss)
        optimizer.step()
        mastery.update(logits.argmax(1) == y)
        steps += 1
        if steps % cfg.report_every == 0:
            fabric.print(f"level {level} step {steps}: loss {loss.item():.3f}")
    return steps


def main():
    cfg = Config()
    fabric = Fabric(accelerator="cpu", devices=3, strategy="ddp")
    fabric.launch()
    fabric.seed_everything(0)

    model = nn.Sequential(nn.Linear(cfg.length, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    model, optimizer = fabric.setup(model, optimizer)
    task = Task(cfg, fabric.global_rank)

    for level in range(1, cfg.levels + 1):
        steps = train_level(fabric, model, optimizer, task, level, cfg)
        fabric.barrier()
        fabric.print(f"level {level} mastered after {steps} steps")

    fabric.print("curriculum finished")


if __name__ == "__main__":
    main()
