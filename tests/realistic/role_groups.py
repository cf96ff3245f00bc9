"""Learner/actor layout on four processes: actors exchange statistics, learners average gradients."""
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    obs: int = 6
    actions: int = 3
    steps: int = 12
    batch: int = 32
    publish_every: int = 4
    lr: float = 1e-2


class Policy(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(cfg.obs, 32), nn.Tanh(), nn.Linear(32, cfg.actions))

    def forward(self, x):
        return self.body(x)


class Topology:
    """Placement of the processes. The table is written per host by the launcher."""

    def __init__(self, rank):
        hosts = {0: "gpu-a", 1: "gpu-a", 2: "cpu-b", 3: "cpu-c"}
        self.rank = rank
        self.host = hosts[rank]
        self.groups = {
            "learners": dist.new_group([0, 1]),
            "actors": dist.new_group([2, 3]),
            "all": dist.group.WORLD,
        }

    def role(self):
        return "learner" if self.host.startswith("gpu") else "actor"

    def zone(self):
        return self.host.split("-")[1]


def learner_step(policy, optimizer, cfg, gen, group):
    obs = torch.randn(cfg.batch, cfg.obs, generator=gen)
    target = obs[:, : cfg.actions].argmax(1)
    loss = F.cross_entropy(policy(obs), target)
    optimizer.zero_grad()
    loss.backward()
    for p in policy.parameters():
        dist.all_reduce(p.grad, group=group)
        p.grad /= group.size()
    optimizer.step()
    return loss.item()


def actor_step(policy, cfg, gen, group):
    with torch.no_grad():
        obs = torch.randn(cfg.batch, cfg.obs, generator=gen)
        picks = torch.distributions.Categorical(logits=policy(obs)).sample()
    histogram = torch.bincount(picks, minlength=cfg.actions).float()
    dist.all_reduce(histogram, group=group)
    return histogram


def publish(policy):
    """Weights go from the first learner to everybody."""
    for p in policy.parameters():
        dist.broadcast(p.data, src=0)


def exchange(topology, histogram):
    """Actors share their histograms with the peers they are configured for."""
    match topology.zone():
        case "b":
            group = topology.groups["actors"]
        case "c" | "a":
            group = topology.groups["all"]
        case other:
            raise ValueError(f"unknown zone {other}")
    parts = [torch.zeros_like(histogram) for _ in range(group.size())]
    dist.all_gather(parts, histogram, group=group)
    return torch.stack(parts).mean(0)


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    topology = Topology(rank)
    policy = Policy(cfg)
    optimizer = torch.optim.Adam(policy.parameters(), lr=cfg.lr)
    gen = torch.Generator().manual_seed(rank)

    for step in range(1, cfg.steps + 1):
        if topology.role() == "learner":
            loss = learner_step(policy, optimizer, cfg, gen, topology.groups["learners"])
            if rank == 0:
                print(f"step {step} loss {loss:.4f}", flush=True)
        else:
            histogram = actor_step(policy, cfg, gen, topology.groups["actors"])
            if step % cfg.publish_every == 0:
                histogram = exchange(topology, histogram)
        if step % cfg.publish_every == 0:
            publish(policy)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
