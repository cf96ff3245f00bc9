"""Mixture-of-experts style router trained with DeepSpeed; capacity is rebalanced when an expert overflows."""
from dataclasses import dataclass

import deepspeed
import torch
import torch.nn as nn
import torch.nn.functional as F
from deepspeed import comm as dist


@dataclass
class Config:
    dim: int = 8
    experts: int = 4
    tokens: int = 64
    steps: int = 30
    capacity: float = 0.48
    check_from: int = 5


class Experts(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.router = nn.Linear(cfg.dim, cfg.experts)
        self.experts = nn.ModuleList(nn.Linear(cfg.dim, cfg.dim) for _ in range(cfg.experts))
        self.register_buffer("bias", torch.zeros(cfg.experts))
        self.last_load = None

    def forward(self, x):
        gate = F.softmax(self.router(x) + self.bias, -1)
        with torch.no_grad():
            hard = gate.argmax(-1)
            self.last_load = torch.bincount(hard, minlength=gate.shape[-1]).float() / len(x)
        stacked = torch.stack([e(x) for e in self.experts], 1)
        return (gate.unsqueeze(-1) * stacked).sum(1)


class Balancer:
    """Moves the router bias against overloaded experts, using the loads of all workers."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.events = 0

    def overflow(self, load):
        return load.max() > self.cfg.capacity

    def rebalance(self, module):
        loads = [torch.zeros_like(module.last_load) for _ in range(dist.get_world_size())]
        dist.all_gather(loads, module.last_load)
        mean = torch.stack(loads).mean(0)
        module.bias -= 0.5 * (mean - 1 / self.cfg.experts)
        self.events += 1


class TokenSource:
    def __init__(self, cfg, rank):
        self.cfg, self.rank = cfg, rank
        self.gen = torch.Generator().manual_seed(rank)
        self.topic = torch.randn(cfg.dim, generator=torch.Generator().manual_seed(5))

    def batch(self, step):
        x = torch.randn(self.cfg.tokens, self.cfg.dim, generator=self.gen)
        if self.rank == 1 and step >= 9:
            x = x * 0.2 + 2 * self.topic  # a long document about one topic
        return x, x.roll(1, dims=1)


def main():
    cfg = Config()
    deepspeed.init_distributed(dist_backend="gloo")
    torch.manual_seed(0)
    module = Experts(cfg)
    engine, _, _, _ = deepspeed.initialize(
        model=module,
        model_parameters=module.parameters(),
        config={
            "train_micro_batch_size_per_gpu": cfg.tokens,
            "optimizer": {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}},
            "zero_optimization": {"stage": 1},
            "steps_per_print": 1000,
        },
    )
    source = TokenSource(cfg, dist.get_rank())
    balancer = Balancer(cfg)
    for step in range(cfg.steps):
        x, y = source.batch(step)
        loss = F.mse_loss(engine(x), y)
        engine.backward(loss)
        engine.step()
        if step < cfg.check_from:
            continue
        if balancer.overflow(module.last_load):
            balancer.rebalance(module)
        if step % 10 == 0 and dist.get_rank() == 0:
            print(f"step {step} loss {loss.item():.4f} load {module.last_load.tolist()}", flush=True)
    dist.barrier()
    print(f"rank {dist.get_rank()}: {balancer.events} rebalancing events", flush=True)


if __name__ == "__main__":
    main()
