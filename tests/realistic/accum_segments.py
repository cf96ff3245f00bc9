"""Gradient accumulation with no_sync over the micro-batches of a session."""
import argparse
import contextlib
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Config:
    dim: int = 8
    sessions: int = 24
    micro: int = 16
    accum: int = 4
    lr: float = 0.01
    log_every: int = 2


class SessionSet:
    """Each session is a variable number of events; workers take the sessions alternately."""

    def __init__(self, cfg, rank, world):
        g = torch.Generator().manual_seed(11)
        lengths = torch.randint(40, 120, (cfg.sessions,), generator=g).tolist()
        self.sessions = []
        for i, n in enumerate(lengths):
            x = torch.randn(n, cfg.dim, generator=g)
            if i % world == rank:
                self.sessions.append((x, x.sum(1, keepdim=True).sin()))

    def micro_batches(self, size):
        xs = torch.cat([x for x, _ in self.sessions])
        ys = torch.cat([y for _, y in self.sessions])
        return list(zip(xs.split(size), ys.split(size)))


class Accumulator:
    def __init__(self, model, optimizer, cfg):
        self.model, self.optimizer, self.cfg = model, optimizer, cfg
        self.updates = 0

    def group(self, batches):
        """Splits the micro-batches into groups of cfg.accum, the last one may be smaller."""
        return [batches[i:i + self.cfg.accum] for i in range(0, len(batches), self.cfg.accum)]

    def backward(self, chunk):
        total = 0.0
        for i, (x, y) in enumerate(chunk):
            last = i + 1 == self.cfg.accum
            with contextlib.nullcontext() if last else self.model.no_sync():
                loss = F.mse_loss(self.model(x), y) / len(chunk)
                loss.backward()
            total += loss.item()
        return total

    def step(self, chunk):
        loss = self.backward(chunk)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.updates += 1
        return loss


def balance(chunks, world):
    """Same number of updates on every worker."""
    n = torch.tensor([len(chunks)])
    dist.all_reduce(n, op=dist.ReduceOp.MIN)
    return chunks[: int(n)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accum", type=int, default=Config.accum)
    args = parser.parse_args()
    cfg = Config(accum=args.accum)

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    data = SessionSet(cfg, rank, world)
    model = DDP(nn.Sequential(nn.Linear(cfg.dim, 32), nn.SiLU(), nn.Linear(32, 1)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    accumulator = Accumulator(model, optimizer, cfg)

    chunks = balance(accumulator.group(data.micro_batches(cfg.micro)), world)
    for i, chunk in enumerate(chunks):
        loss = accumulator.step(chunk)
        if i % cfg.log_every == 0 and rank == 0:
            print(f"update {i} loss {loss:.4f}", flush=True)

    updates = [None] * world
    dist.all_gather_object(updates, accumulator.updates)
    if rank == 0:
        print("updates", updates)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
