"""Training job with a plug-in style hook system: warm-up, calibration, training and reporting phases."""
import time
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class JobConfig:
    dim: int = 12
    phases: tuple = ("warmup", "main", "cooldown")
    steps: dict = field(default_factory=lambda: {"warmup": 4, "main": 12, "cooldown": 4})
    batch: int = 16
    lr: float = 0.02
    outlier_limit: float = 3.6


class Source:
    def __init__(self, rank, cfg):
        self.gen = torch.Generator().manual_seed(40 + rank)
        self.cfg = cfg
        # second site measures with a wider range
        self.scale = 1.0 if rank == 0 else 1.6

    def batch(self):
        x = self.scale * torch.randn(self.cfg.batch, self.cfg.dim, generator=self.gen)
        return x, x.abs().mean(1, keepdim=True)


class Calibration:
    """Keeps running ranges and refits the input scale when outliers pile up."""

    def __init__(self, dim):
        self.high = torch.zeros(dim)
        self.scale = torch.ones(dim)
        self.refits = 0

    def observe(self, x):
        self.high = torch.maximum(self.high, x.abs().amax(0))

    def refit(self):
        agreed = self.high.clone()
        dist.all_reduce(agreed, op=dist.ReduceOp.MAX)
        self.scale = agreed.clamp(min=1.0)
        self.refits += 1


class Job:
    def __init__(self, cfg, rank):
        self.cfg, self.rank = cfg, rank
        self.source = Source(rank, cfg)
        self.calibration = Calibration(cfg.dim)
        self.model = DDP(nn.Sequential(nn.Linear(cfg.dim, 32), nn.ReLU(), nn.Linear(32, 1)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=cfg.lr)
        self.log = []

    # --- phases -------------------------------------------------------
    def run(self):
        for phase in self.cfg.phases:
            self.run_phase(phase)
            self.report(phase)

    def run_phase(self, phase):
        for step in range(self.cfg.steps[phase]):
            x, y = self.source.batch()
            self.prepare(phase, x)
            self.log.append(self.optimize(x / self.calibration.scale, y))

    def prepare(self, phase, x):
        self.calibration.observe(x)
        self.maybe_refit(phase)

    def maybe_refit(self, phase):
        if phase == "warmup":
            return
        outliers = (self.calibration.high / self.calibration.scale > self.cfg.outlier_limit)
        if outliers.sum() > self.cfg.dim // 2:
            self.calibration.refit()

    def optimize(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def report(self, phase):
        values = [None] * dist.get_world_size()
        dist.all_gather_object(values, (self.rank, phase, self.log[-1], self.calibration.refits))
        if self.rank == 0:
            print(f"[{phase}] " + ", ".join(f"rank {r}: loss {l:.4f}" for r, _, l, _ in values), flush=True)


def main():
    cfg = JobConfig()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    job = Job(cfg, dist.get_rank())
    started = time.perf_counter()
    job.run()
    print(f"rank {dist.get_rank()} finished in {time.perf_counter() - started:.1f}s", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
