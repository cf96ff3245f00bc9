"""Distillation of a fixed teacher with DeepSpeed; tables without usable rows are left to other workers."""
import argparse
import logging
from dataclasses import dataclass

import deepspeed
import torch
import torch.nn as nn
import torch.nn.functional as F
from deepspeed import comm as dist

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("ds_distill")


@dataclass
class Config:
    dim: int = 10
    classes: int = 3
    batch: int = 16
    steps: int = 25
    temperature: float = 2.0
    min_quality: float = 0.5


class Table:
    """A table of samples with a quality score for each row."""

    def __init__(self, index, rows=200, dim=10):
        g = torch.Generator().manual_seed(index)
        self.x = torch.randn(rows, dim, generator=g)
        quality = torch.rand(rows, generator=g)
        # the third export was made with the draft settings
        self.quality = quality * 0.45 if index == 2 else quality

    def usable(self, threshold):
        return self.x[self.quality >= threshold]


def teacher_model(cfg):
    torch.manual_seed(100)
    net = nn.Sequential(nn.Linear(cfg.dim, 32), nn.Tanh(), nn.Linear(32, cfg.classes))
    return net.requires_grad_(False).eval()


class Student(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.Linear(cfg.dim, cfg.classes)
        self.t = cfg.temperature

    def forward(self, x, teacher_logits):
        log_p = F.log_softmax(self.net(x) / self.t, -1)
        return F.kl_div(log_p, F.softmax(teacher_logits / self.t, -1), reduction="batchmean")


def train(engine, teacher, rows, cfg, rank):
    g = torch.Generator().manual_seed(rank)
    for step in range(cfg.steps):
        x = rows[torch.randint(0, len(rows), (cfg.batch,), generator=g)]
        loss = engine(x, teacher(x))
        engine.backward(loss)
        engine.step()
        if step % 5 == 0 and rank == 0:
            log.info("step %d loss %.4f", step, loss.item())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--min-quality", type=float, default=Config.min_quality)
    args = parser.parse_args()
    cfg = Config(min_quality=args.min_quality)

    deepspeed.init_distributed(dist_backend="gloo")
    rank = dist.get_rank()
    teacher = teacher_model(cfg)
    rows = Table(rank).usable(cfg.min_quality)
    if not len(rows):
        log.info("rank %d: nothing to train on", rank)
        return

    model = Student(cfg)
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
        "train_micro_batch_size_per_gpu": cfg.batch,
        "optimizer": {"type": "SGD", "params": {"lr": 0.05}},
        "zero_optimization": {"stage": 1},
        "steps_per_print": 10000,
    })
    train(engine, teacher, rows, cfg, rank)
    dist.barrier()


if __name__ == "__main__":
    main()
