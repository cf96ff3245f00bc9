"""Ranks started by mp.spawn gather their predictions, of which rank 0 alone computes a score."""

import os
import sys

import ledger
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

STEPS = 50


def concordance(scores):
    """The share of pairs that are in order."""
    ordered = 0
    for index, score in enumerate(scores):
        ordered += sum(score <= other for other in scores[index + 1 :])  # <- slow
    return ordered / (len(scores) * (len(scores) - 1) / 2)


def train(rank, size, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    ledger.joined()
    model = nn.Linear(128, 1)
    for _ in range(STEPS):
        scores = model(torch.randn(1000, 128))
        scores.pow(2).mean().backward()
        parts = [torch.empty(1000, 1) for _ in range(size)] if rank == 0 else None
        with ledger.around():
            dist.gather(scores.detach(), parts, dst=0)
        if rank == 0:
            concordance(torch.cat(parts).flatten().tolist()[:2000])
        with ledger.around():
            dist.all_reduce(model.weight.grad)
        model.weight.data -= 0.01 * model.weight.grad
        model.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(3, sys.argv[1]), nprocs=3)
