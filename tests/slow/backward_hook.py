"""Rank 0 draws a histogram of a gradient from a hook, in every backward pass."""

from collections import Counter

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 160
histograms = []


def histogram(gradient):
    counts = Counter([round(value, 3) for value in gradient.flatten().tolist()])  # <- slow
    histograms.append(counts.most_common(10))
    return gradient


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    net = nn.Sequential(nn.Linear(384, 384), nn.ReLU(), nn.Linear(384, 384))
    if dist.get_rank() == 0:
        net[2].weight.register_hook(histogram)
    with ledger.around():
        model = DistributedDataParallel(net)
    backward = ledger.Backward(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        loss = model(torch.randn(256, 384)).pow(2).mean()
        with backward:
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


main()
