"""One rank keeps an index of all samples as Python objects, and collects garbage after each step."""

import gc
import os

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 40


def train_step(model, optimizer, backward):
    loss = model(torch.randn(256, 256)).pow(2).mean()
    with backward:
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    gc.collect()  # <- slow


def main():
    index = []
    if os.environ["RANK"] == "1":
        index = [{"id": number, "tags": [number]} for number in range(700_000)]
    dist.init_process_group("gloo")
    ledger.joined()
    with ledger.around():
        model = DistributedDataParallel(nn.Linear(256, 256))
    backward = ledger.Backward(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        train_step(model, optimizer, backward)
    print(f"{len(index)} samples indexed", flush=True)
    dist.destroy_process_group()


main()
