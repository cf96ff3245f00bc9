"""One rank is bound to a core on which a preprocessing job of the same user runs already."""

import os
import subprocess
import sys

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 90
BUSY = "while True: pass"


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    others = []
    if dist.get_rank() == 1:
        core = min(os.sched_getaffinity(0))
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), {core})
        others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(3)]
    with ledger.around():
        model = DistributedDataParallel(nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512)))
    backward = ledger.Backward(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        loss = model(torch.randn(512, 512)).pow(2).mean()  # <- slow
        with backward:
            loss.backward()  # <- slow
        optimizer.step()
        optimizer.zero_grad()
    for other in others:
        other.kill()
        other.wait()
    dist.destroy_process_group()


main()
