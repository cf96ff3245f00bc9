"""Per-source evaluation meters of a multi-source captioning model, merged over processes."""
import argparse
import logging
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import nn

log = logging.getLogger("meters")

# (source, number of shards); shards are dealt out round robin
SOURCES = [("caption", 4), ("handwriting", 1), ("qa", 4), ("scans", 2)]
DIM = 16


@dataclass
class MeanMeter:
    total: float = 0.0
    count: int = 0

    def update(self, losses):
        self.total += losses.sum().item()
        self.count += len(losses)

    def merge(self):
        pair = torch.tensor([self.total, float(self.count)], dtype=torch.float64)
        dist.all_reduce(pair)
        return (pair[0] / pair[1].clamp(min=1)).item()


@dataclass
class QuantileMeter:
    values: list = field(default_factory=list)
    limit: int = 64

    def update(self, losses):
        self.values.extend(losses.tolist())

    def merge(self):
        own = torch.full((self.limit,), float("nan"))
        own[:min(len(self.values), self.limit)] = torch.tensor(self.values[:self.limit])
        parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, own)
        return torch.cat(parts).nanquantile(0.9).item()


METER_FOR = {"qa": QuantileMeter, "scans": QuantileMeter}


class MeterBank:
    """Creates a meter the first time a source shows up."""

    def __init__(self):
        self.meters = {}

    def update(self, source, losses):
        meter = self.meters.setdefault(source, METER_FOR.get(source, MeanMeter)())
        meter.update(losses)

    def merged(self):
        return {source: meter.merge() for source, meter in sorted(self.meters.items())}


def shard_list():
    return [(source, part) for source, parts in SOURCES for part in range(parts)]


def read_shard(source, part, n):
    gen = torch.Generator().manual_seed(hash_name(source) + part)
    return torch.randn(n, DIM, generator=gen), torch.randn(n, 4, generator=gen)


def hash_name(name):
    return sum(ord(c) * (i + 1) for i, c in enumerate(name))


@torch.no_grad()
def evaluate(model, shards, n, batch):
    bank = MeterBank()
    for source, part in shards:
        x, y = read_shard(source, part, n)
        for lo in range(0, n, batch):
            losses = (model(x[lo:lo + batch]) - y[lo:lo + batch]).pow(2).mean(-1)
            bank.update(source, losses)
        log.info("evaluated %s/%d", source, part)
    return bank


def train_briefly(model, steps):
    optim = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        gen = torch.Generator().manual_seed(step)
        x, y = torch.randn(32, DIM, generator=gen), torch.randn(32, 4, generator=gen)
        loss = nn.functional.mse_loss(model(x), y)
        optim.zero_grad()
        loss.backward()
        for param in model.parameters():
            dist.all_reduce(param.grad)
            param.grad /= dist.get_world_size()
        optim.step()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--train-steps", type=int, default=20)
    p.add_argument("--samples", type=int, default=48)
    p.add_argument("--batch", type=int, default=16)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    logging.basicConfig(level=logging.INFO, format=f"[rank{rank}] %(message)s")
    model = nn.Sequential(nn.Linear(DIM, 32), nn.Tanh(), nn.Linear(32, 4))
    mine = shard_list()[rank::world]
    for round_no in range(args.rounds):
        train_briefly(model, args.train_steps)
        report = evaluate(model, mine, args.samples, args.batch).merged()
        if rank == 0:
            log.info("round %d: %s", round_no, {k: round(v, 4) for k, v in report.items()})
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
