"""A background thread of one rank sorts a long list over and over, and holds the GIL meanwhile."""

import threading

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 30
over = threading.Event()


def percentiles(losses):
    """Keep the median of the losses of all samples up to date."""
    while not over.wait(0.05):
        ordered = sorted(losses)  # <- slow
        losses[0] = ordered[len(ordered) // 2]


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    torch.manual_seed(0)
    if dist.get_rank() == 1:
        losses = torch.rand(500_000).tolist()
        threading.Thread(target=percentiles, args=(losses,)).start()
    with ledger.around():
        model = DistributedDataParallel(nn.Linear(256, 256))
    backward = ledger.Backward(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        for _ in range(4):  # <- slow
            loss = model(torch.randn(256, 256)).pow(2).mean()  # <- slow
            with backward:
                loss.backward()  # <- slow
        optimizer.step()  # <- slow
        optimizer.zero_grad()
    over.set()
    dist.destroy_process_group()


main()
