"""Rank 0 scatters the samples of the next epoch while the others still reduce-scatter gradients."""

import torch
import torch.distributed as dist
from marks import about_to_block


def next_samples() -> torch.Tensor:
    mine = torch.empty(2)
    parts = list(torch.arange(2.0 * dist.get_world_size()).split(2))
    about_to_block()
    dist.scatter(mine, parts if dist.get_rank() == 0 else None, src=0)  # <- culprit, rank 0
    return mine


def train() -> None:
    steps = 3 if dist.get_rank() == 0 else 4
    for _ in range(steps):  # <- parted
        shard = torch.empty(2)
        about_to_block()
        dist.reduce_scatter_tensor(shard, torch.randn(6))  # <- rank 1, rank 2
    next_samples()
    dist.barrier()


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
