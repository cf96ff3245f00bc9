"""Three ranks, one of which adds noise to its samples in Python: it takes a third longer."""

import random
import time

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 50


def noise(count):
    return [random.gauss(0, 0.1) for _ in range(count)]  # <- slow


def batch(noisy):
    time.sleep(0.2)  # the camera gives a frame every 0.2 s
    frame = torch.rand(300, 300)
    if noisy:
        frame += torch.tensor(noise(frame.numel())).view(300, 300)
    return frame


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    with ledger.around():
        model = DistributedDataParallel(nn.Linear(300, 100))
    backward = ledger.Backward(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        loss = model(batch(noisy=dist.get_rank() == 1)).pow(2).mean()
        with backward:
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


main()
