"""One rank begins each average late, but the other has enough to do until it is needed."""

import time

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 50


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    model = nn.Linear(64, 64)
    late = 0.15 if dist.get_rank() == 1 else 0.0
    for _ in range(STEPS):
        model(torch.randn(64, 64)).pow(2).mean().backward()
        time.sleep(late)
        call = ledger.posted()
        work = dist.all_reduce(model.weight.grad, async_op=True)
        time.sleep(0.27 - late)  # the next batch is made ready
        with ledger.around(call):
            work.wait()
        model.zero_grad()
    dist.destroy_process_group()


main()
