"""Local SGD: pairs of workers average their weights, all workers average after every round."""
import argparse
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn


@dataclass
class Config:
    dim: int = 8
    rounds: int = 5
    local_steps: int = 6
    batch: int = 16
    lr: float = 0.05
    max_drift: float = 0.12


class Shard:
    def __init__(self, cfg, rank):
        self.cfg = cfg
        self.gen = torch.Generator().manual_seed(rank)
        self.shift = {0: 0.0, 1: 0.1, 2: 3.0, 3: 0.2}[rank]

    def batch(self):
        x = torch.randn(self.cfg.batch, self.cfg.dim, generator=self.gen)
        return x, x.sum(1, keepdim=True) / 4 + self.shift


class PairAverager:
    """Averages the weights of this worker with those of its partner."""

    def __init__(self, rank, world):
        assert world % 2 == 0
        self.groups = [dist.new_group([i, i + 1]) for i in range(0, world, 2)]
        self.group = self.groups[rank // 2]
        self.calls = 0

    def average(self, model):
        flat = torch.cat([p.data.flatten() for p in model.parameters()])
        parts = [torch.empty_like(flat) for _ in range(self.group.size())]
        dist.all_gather(parts, flat, group=self.group)
        write_flat(model, torch.stack(parts).mean(0))
        self.calls += 1


def write_flat(model, flat):
    offset = 0
    for p in model.parameters():
        n = p.numel()
        p.data.copy_(flat[offset:offset + n].view_as(p))
        offset += n


def snapshot(model):
    return [p.detach().clone() for p in model.parameters()]


def drift(model, reference):
    return sum((p.detach() - r).pow(2).sum() for p, r in zip(model.parameters(), reference)).sqrt().item()


def local_round(model, optimizer, shard, averager, cfg):
    reference = snapshot(model)
    step = 0
    while step < cfg.local_steps:
        x, y = shard.batch()
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        moved = drift(model, reference)
        if moved > cfg.max_drift:
            averager.average(model)
            reference = snapshot(model)
    return loss.item()


def global_average(model, world):
    for p in model.parameters():
        dist.all_reduce(p.data)
        p.data /= world


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=Config.rounds)
    parser.add_argument("--max-drift", type=float, default=Config.max_drift)
    args = parser.parse_args()
    cfg = Config(rounds=args.rounds, max_drift=args.max_drift)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.Linear(cfg.dim, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
    shard = Shard(cfg, rank)
    averager = PairAverager(rank, world)
    for i in range(cfg.rounds):
        loss = local_round(model, optimizer, shard, averager, cfg)
        global_average(model, world)
        if rank == 0:
            print(f"round {i}: loss {loss:.4f} pair averages {averager.calls}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
