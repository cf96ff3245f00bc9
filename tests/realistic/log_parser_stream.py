"""Anomaly detector trained on a stream of web-server log lines, one file per worker."""
import re
from dataclasses import dataclass
from typing import Iterator

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

LINE = re.compile(r"^(?P<ms>\d+) (?P<method>GET|POST|PUT) (?P<status>\d{3}) (?P<size>\d+)$")
METHODS = {"GET": 0, "POST": 1, "PUT": 2}


@dataclass
class Config:
    lines_per_file: int = 600
    batch_size: int = 20
    hidden: int = 16
    lr: float = 5e-3
    epochs: int = 2
    log_every: int = 10


def make_log(worker: int, cfg: Config) -> list[str]:
    g = torch.Generator().manual_seed(worker + 1)
    lines = []
    for i in range(cfg.lines_per_file):
        ms = int(torch.randint(1, 900, (1,), generator=g))
        method = ("GET", "POST", "PUT")[int(torch.randint(0, 3, (1,), generator=g))]
        status = (200, 200, 200, 404, 500)[int(torch.randint(0, 5, (1,), generator=g))]
        size = int(torch.randint(100, 9000, (1,), generator=g))
        lines.append(f"{ms} {method} {status} {size}")
    if worker == 0:
        lines[417] = "-- log rotated --"
    return lines


def parse(line: str):
    m = LINE.match(line)
    if m is None:
        return None
    features = [int(m["ms"]) / 1000, METHODS[m["method"]] / 2, int(m["size"]) / 10000]
    return features, float(m["status"] == "500")


def records(lines) -> Iterator[tuple[list[float], float]]:
    """Yields the records of a file up to its end marker."""
    for line in lines:
        record = parse(line)
        if record is None:
            return
        yield record


def batched(source, size):
    xs, ys = [], []
    for features, label in source:
        xs.append(features)
        ys.append(label)
        if len(xs) == size:
            yield torch.tensor(xs), torch.tensor(ys)
            xs, ys = [], []


class Detector(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def fit_epoch(model, optimizer, lines, cfg, rank):
    loss_fn = nn.BCEWithLogitsLoss()
    losses = []
    for step, (x, y) in enumerate(batched(records(lines), cfg.batch_size)):
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if step % cfg.log_every == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    return torch.stack(losses).mean()


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    lines = make_log(rank, cfg)
    model = DDP(Detector(cfg.hidden))
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        mean = fit_epoch(model, optimizer, lines, cfg, rank)
        dist.reduce(mean, dst=0)
        dist.barrier()
        if rank == 0:
            print(f"epoch {epoch}: {mean.item() / dist.get_world_size():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
