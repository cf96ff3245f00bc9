"""Healthy and slow: rank 0 writes a long report while the others wait for it."""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def make_batch(generator):
    features = torch.randn(64, 20, generator=generator)
    return features, features.pow(2).sum(-1, keepdim=True).sqrt()


def permutation_importance(model, seconds):
    """Importance of each feature, by shuffling its column; takes about `seconds`."""
    generator = torch.Generator().manual_seed(0)
    features, target = make_batch(generator)
    scores = []
    end = time.monotonic() + seconds
    column = 0
    while time.monotonic() < end:
        shuffled = features.clone()
        order = torch.randperm(len(features), generator=generator)
        shuffled[:, column] = features[order, column]
        with torch.no_grad():
            scores.append(float((model(shuffled) - target).square().mean()))
        column = (column + 1) % features.shape[1]
    return sum(scores) / len(scores)


def train(model, optimizer, generator, steps):
    for _ in range(steps):
        features, target = make_batch(generator)
        loss = (model(features) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(rank)
    for epoch in range(2):
        loss = train(model, optimizer, generator, 20)
        if rank == 0:
            score = permutation_importance(model.module, seconds=9.0)
            print(f"epoch {epoch}: loss {loss:.3f}, importance {score:.3f}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
