"""A three-stage pipeline with hand-written send/recv (GPipe schedule without overlap)."""
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    dim: int = 16
    micro_batches: int = 4
    micro_size: int = 8
    steps: int = 10
    lr: float = 0.05
    clip: float = 5.0
    log_every: int = 2


class Stage(nn.Module):
    def __init__(self, index, count, dim):
        super().__init__()
        self.index, self.count = index, count
        self.layer = nn.Sequential(nn.Linear(dim, dim), nn.Tanh())
        self.out = nn.Linear(dim, 2) if index == count - 1 else nn.Identity()

    @property
    def first(self):
        return self.index == 0

    @property
    def last(self):
        return self.index == self.count - 1

    def forward(self, x):
        return self.out(self.layer(x))


class Source:
    def __init__(self, cfg):
        self.cfg = cfg
        self.gen = torch.Generator().manual_seed(3)

    def step(self):
        """Micro-batches of this step. Every stage generates the same stream."""
        out = []
        for _ in range(self.cfg.micro_batches):
            x = torch.randn(self.cfg.micro_size, self.cfg.dim, generator=self.gen)
            out.append((x, (x[:, 0] > 0).long()))
        return out


class Runner:
    def __init__(self, cfg, rank, world):
        torch.manual_seed(rank)
        self.cfg, self.rank = cfg, rank
        self.stage = Stage(rank, world, cfg.dim)
        self.opt = torch.optim.SGD(self.stage.parameters(), lr=cfg.lr)
        self.cache = []

    def receive(self, source, shape):
        buf = torch.empty(shape)
        dist.recv(buf, src=source)
        return buf.requires_grad_()

    def forward_micro(self, x, y):
        shape = (self.cfg.micro_size, self.cfg.dim)
        inp = x if self.stage.first else self.receive(self.rank - 1, shape)
        out = self.stage(inp)
        if self.stage.last:
            out = F.cross_entropy(out, y) / self.cfg.micro_batches
        else:
            dist.send(out.detach(), dst=self.rank + 1)
        self.cache.append((inp, out))
        return out

    def backward_micro(self):
        inp, out = self.cache.pop()
        if self.stage.last:
            out.backward()
        else:
            grad = torch.empty_like(out)
            dist.recv(grad, src=self.rank + 1)
            if not self.acceptable(grad):
                return 0
            out.backward(grad)
        if not self.stage.first:
            dist.send(inp.grad, dst=self.rank - 1)
        return 1

    def acceptable(self, grad):
        """Micro-batches with vanishing gradients are not worth the backward pass."""
        return grad.abs().max() > self.threshold

    threshold = 1e-2

    def run_step(self, micro):
        losses = [self.forward_micro(x, y) for x, y in micro]
        used = sum(self.backward_micro() for _ in micro)
        self.opt.step()
        self.opt.zero_grad()
        return sum(l.item() for l in losses) if self.stage.last else None, used


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    runner = Runner(cfg, rank, world)
    source = Source(cfg)
    for step in range(cfg.steps):
        loss, used = runner.run_step(source.step())
        if loss is not None and step % cfg.log_every == 0:
            print(f"step {step}: loss {loss:.4f} micro-batches {used}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
