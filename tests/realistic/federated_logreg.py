"""Logistic regression over hospitals: each round averages weights and the loss curve."""
import argparse
from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass
class Config:
    dim: int = 7
    rows: int = 200
    rounds: int = 15
    local_epochs: int = 2
    lr: float = 0.3
    drop: float = 0.079


class Hospital:
    def __init__(self, cfg, rank):
        g = torch.Generator().manual_seed(60 + rank)
        w = torch.linspace(-2, 2, cfg.dim)
        self.x = torch.randn(cfg.rows, cfg.dim, generator=g)
        self.y = (self.x @ w + 0.3 * torch.randn(cfg.rows, generator=g) > 0).float()
        if rank == 2:
            self.x *= 2.0  # other units
        self.history = []

    def loss(self, w):
        z = self.x @ w[:-1] + w[-1]
        return torch.nn.functional.binary_cross_entropy_with_logits(z, self.y)

    def fit(self, w, epochs, lr):
        w = w.clone().requires_grad_()
        for _ in range(epochs):
            (grad,) = torch.autograd.grad(self.loss(w), w)
            with torch.no_grad():
                w -= lr * grad
        self.history.append(self.loss(w).item())
        return w.detach()

    def improved_by(self):
        return self.history[-2] - self.history[-1] if len(self.history) > 1 else 0.0


class Server:
    """There is no server process: everything is a mean over the workers."""

    def __init__(self):
        self.world = dist.get_world_size()

    def mean(self, vector):
        out = vector.clone()
        dist.all_reduce(out)
        return out / self.world


class Momentum:
    """Server momentum with a restart when the objective falls quickly."""

    def __init__(self, cfg, server):
        self.cfg, self.server = cfg, server
        self.velocity = torch.zeros(cfg.dim + 1)
        self.restarts = 0

    def apply(self, w, mean):
        self.velocity = 0.5 * self.velocity + (mean - w)
        return w + self.velocity

    def adjust(self, hospital):
        gain = hospital.improved_by()
        if gain <= self.cfg.drop:
            return
        self.velocity = self.server.mean(self.velocity) * 0.5
        self.restarts += 1


def run(cfg, hospital, rank):
    server = Server()
    momentum = Momentum(cfg, server)
    w = torch.zeros(cfg.dim + 1)
    for r in range(cfg.rounds):
        local = hospital.fit(w, cfg.local_epochs, cfg.lr)
        w = momentum.apply(w, server.mean(local))
        momentum.adjust(hospital)
        if rank == 0 and r % 5 == 0:
            print(f"round {r}: loss {hospital.history[-1]:.4f}", flush=True)
    return w, momentum


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=Config.rounds)
    parser.add_argument("--drop", type=float, default=Config.drop)
    args = parser.parse_args()
    cfg = Config(rounds=args.rounds, drop=args.drop)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    hospital = Hospital(cfg, rank)
    w, momentum = run(cfg, hospital, rank)
    dist.barrier()
    if rank == 0:
        print("weights", [round(v, 3) for v in w.tolist()], "restarts", momentum.restarts)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
