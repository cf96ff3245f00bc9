"""Per-region evaluation with torchmetrics and process subgroups (two ranks per region)."""
import argparse
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torchmetrics import MeanMetric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassConfusionMatrix


@dataclass
class Config:
    dim: int = 8
    classes: int = 3
    epochs: int = 4
    steps: int = 6
    batch: int = 24
    lr: float = 0.05
    detail_below: float = 0.60


class RegionData:
    def __init__(self, cfg, rank):
        self.cfg, self.rank = cfg, rank
        self.gen = torch.Generator().manual_seed(rank)
        self.w = torch.randn(cfg.dim, cfg.classes, generator=torch.Generator().manual_seed(9))

    def batch(self):
        x = torch.randn(self.cfg.batch, self.cfg.dim, generator=self.gen)
        y = (x @ self.w).argmax(1)
        if self.rank == 3:
            y = torch.randint(0, self.cfg.classes, y.shape, generator=self.gen)
        return x, y


class RegionEvaluator:
    """Accuracy is synchronised inside a region; the confusion matrix only when accuracy is poor."""

    def __init__(self, cfg, group):
        self.cfg = cfg
        # quick local estimate, used to decide how much detail is worth it
        self.quick = MulticlassAccuracy(cfg.classes, average="micro", sync_on_compute=False)
        self.accuracy = MulticlassAccuracy(cfg.classes, average="micro", process_group=group)
        self.confusion = MulticlassConfusionMatrix(cfg.classes, process_group=group)

    def update(self, logits, y):
        for m in (self.quick, self.accuracy, self.confusion):
            m.update(logits, y)

    def compute(self):
        out = {"acc": self.accuracy.compute().item()}
        if self.quick.compute() < self.cfg.detail_below:
            out["confusion"] = self.confusion.compute().tolist()
        return out

    def reset(self):
        for m in (self.quick, self.accuracy, self.confusion):
            m.reset()


def make_groups(world):
    regions = {"north": [0, 1], "south": [2, 3]}
    groups = {name: dist.new_group(ranks) for name, ranks in regions.items()}
    mine = next(name for name, ranks in regions.items() if dist.get_rank() in ranks)
    return mine, groups[mine]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    args = parser.parse_args()
    cfg = Config(epochs=args.epochs)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    region, group = make_groups(world)
    data = RegionData(cfg, rank)
    model = DDP(nn.Linear(cfg.dim, cfg.classes))
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
    evaluator = RegionEvaluator(cfg, group)
    mean_loss = MeanMetric(sync_on_compute=False)

    for epoch in range(cfg.epochs):
        for _ in range(cfg.steps):
            x, y = data.batch()
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean_loss.update(loss.item())
            if epoch > 1:
                evaluator.update(logits.detach(), y)
        if epoch > 1:
            report = evaluator.compute()
            evaluator.reset()
            if group.rank() == 0:
                print(f"{region} epoch {epoch} loss {mean_loss.compute():.3f} {report}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
