"""One rank runs with a lower priority than the preprocessing that it has started, on all cores."""

import os
import subprocess
import sys

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 200
BUSY = "while True: pass"


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    others = []
    if dist.get_rank() == 1:
        others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count())]
        os.nice(7)
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    for _ in range(STEPS):
        loss = model(torch.randn(256, 256)).pow(2).mean()  # <- slow
        loss.backward()  # <- slow
        for parameter in model.parameters():
            with ledger.around():
                dist.all_reduce(parameter.grad)  # <- slow
            parameter.data -= 0.01 * parameter.grad  # <- slow
        model.zero_grad()
    for other in others:
        other.kill()
        other.wait()
    dist.destroy_process_group()


main()
