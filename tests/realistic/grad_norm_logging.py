"""Sequence classifier with manual gradient averaging and optional gradient-norm logging."""
import math
import os
import tempfile
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    world_size: int = 2
    vocab: int = 30
    hidden: int = 24
    seq: int = 12
    batch: int = 16
    steps: int = 40
    log_every: int = 5
    sync_every: int = 10
    lr: float = 1e-2


class Classifier(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.Embedding(cfg.vocab, cfg.hidden)
        self.rnn = nn.LSTM(cfg.hidden, cfg.hidden, batch_first=True)
        self.head = nn.Linear(cfg.hidden, 2)

    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        return self.head(h[:, -1])


class MetricLogger:
    """Writes one line per logged step. Workers other than the first have no sink."""

    def __init__(self, rank, path):
        self.sink = open(path, "w") if rank == 0 else None
        self.last = {}

    @property
    def active(self):
        return self.sink is not None

    def write(self, step, **values):
        self.last = values
        if self.sink:
            self.sink.write(f"{step} " + " ".join(f"{k}={v}" for k, v in values.items()) + "\n")
            self.sink.flush()

    def close(self):
        if self.sink:
            self.sink.close()


def average_gradients(model):
    world = dist.get_world_size()
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= world


def norm_over_workers(model):
    """Norm of the gradients on every worker, to spot diverging shards."""
    local = torch.stack([p.grad.norm() for p in model.parameters()]).norm().reshape(1)
    out = [torch.zeros(1) for _ in range(dist.get_world_size())]
    dist.all_gather(out, local)
    return math.sqrt(sum(o.item() ** 2 for o in out))


def batches(cfg, rank):
    g = torch.Generator().manual_seed(50 + rank)
    for _ in range(cfg.steps):
        x = torch.randint(0, cfg.vocab, (cfg.batch, cfg.seq), generator=g)
        yield x, (x[:, 0] > cfg.vocab // 2).long()


def worker(rank, cfg, init_file):
    dist.init_process_group("gloo", init_method=f"file://{init_file}", rank=rank, world_size=cfg.world_size)
    torch.manual_seed(1)
    model = Classifier(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    logger = MetricLogger(rank, os.path.join(tempfile.gettempdir(), "grad_norm_logging.txt"))

    for step, (x, y) in enumerate(batches(cfg, rank), start=1):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model)
        grad_norm = norm_over_workers(model) if step % cfg.log_every == 0 and logger.active else None
        optimizer.step()
        if step % cfg.log_every == 0:
            logger.write(step, loss=round(loss.item(), 4), grad_norm=grad_norm)
        if step % cfg.sync_every == 0:
            dist.barrier()

    logger.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    cfg = Config()
    init_file = tempfile.mktemp(prefix="grad_norm_init_")
    mp.spawn(worker, args=(cfg, init_file), nprocs=cfg.world_size, join=True)
