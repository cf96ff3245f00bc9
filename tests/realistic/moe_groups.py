"""Mixture-of-experts toy: experts are spread over processes, some of them are replicated."""
import argparse
import logging
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn

log = logging.getLogger("moe")


@dataclass
class ParallelLayout:
    """Process r keeps expert r % n_experts; equal experts are averaged together."""

    n_experts: int
    rank: int
    world: int
    expert_group: object = None

    @property
    def expert_id(self):
        return self.rank % self.n_experts

    @property
    def replicas(self):
        return len(range(self.expert_id, self.world, self.n_experts))

    def build_groups(self):
        groups = []
        for expert in range(self.n_experts):
            members = list(range(expert, self.world, self.n_experts))
            groups.append(dist.new_group(members))
            if self.rank == 0:
                log.info("expert %d lives on %s", expert, members)
        self.expert_group = groups[self.rank // self.n_experts]
        return self


class Expert(nn.Module):
    def __init__(self, dim, seed):
        super().__init__()
        gen = torch.Generator().manual_seed(seed)
        self.w1 = nn.Parameter(0.1 * torch.randn(dim, 2 * dim, generator=gen))
        self.w2 = nn.Parameter(0.1 * torch.randn(2 * dim, dim, generator=gen))

    def forward(self, x):
        return torch.relu(x @ self.w1) @ self.w2


class MoEModel(nn.Module):
    def __init__(self, dim, layout):
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Linear(dim, dim)
        self.head = nn.Linear(dim, 1)
        self.expert = Expert(dim, seed=100 + layout.expert_id)

    def forward(self, x):
        h = torch.tanh(self.stem(x))
        return self.head(h + self.expert(h)).squeeze(-1)

    def shared_parameters(self):
        return [*self.stem.parameters(), *self.head.parameters()]


def flat_average(params, count, group=None):
    flat = torch.cat([p.grad.flatten() for p in params])
    dist.all_reduce(flat, group=group)
    flat /= count
    offset = 0
    for p in params:
        p.grad.copy_(flat[offset:offset + p.numel()].view_as(p))
        offset += p.numel()


def exchange_gradients(model, layout):
    flat_average(list(model.expert.parameters()), layout.replicas, group=layout.expert_group)
    flat_average(model.shared_parameters(), layout.world)


def train(model, layout, args):
    optim = torch.optim.SGD(model.parameters(), lr=args.lr)
    gen = torch.Generator().manual_seed(50 + layout.rank)
    for step in range(args.steps):
        x = torch.randn(args.batch, args.dim, generator=gen)
        y = x.sum(-1).sin()
        loss = nn.functional.mse_loss(model(x), y)
        optim.zero_grad()
        loss.backward()
        if step >= args.local_steps:
            exchange_gradients(model, layout)
        optim.step()
        if step % 5 == 0:
            log.info("step %d loss %.4f", step, loss.item())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--experts", type=int, default=2)
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--local-steps", type=int, default=3)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--dim", type=int, default=20)
    p.add_argument("--lr", type=float, default=0.05)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    logging.basicConfig(level=logging.INFO, format=f"[rank{rank}] %(message)s")
    layout = ParallelLayout(args.experts, rank, world).build_groups()
    log.info("expert %d, %d replica(s)", layout.expert_id, layout.replicas)
    train(MoEModel(args.dim, layout), layout, args)
    dist.barrier()
    if rank == 0:
        log.info("finished")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
