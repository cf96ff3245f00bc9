"""A batch system stops one rank again and again, to let other work run."""

import os
import signal
import subprocess
import sys
import time

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 50
SCHEDULER = """
import os, signal, sys, time
while True:
    time.sleep(0.7)
    os.kill(int(sys.argv[1]), signal.SIGSTOP)
    time.sleep(1.3)
    os.kill(int(sys.argv[1]), signal.SIGCONT)
"""


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    scheduler = None
    pids = [torch.zeros(1, dtype=torch.long) for _ in range(dist.get_world_size())]
    dist.all_gather(pids, torch.tensor([os.getpid()]))
    if dist.get_rank() == 0:
        scheduler = subprocess.Popen([sys.executable, "-c", SCHEDULER, str(int(pids[2]))])
    with ledger.around():
        model = DistributedDataParallel(nn.Linear(256, 256))
    backward = ledger.Backward(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        time.sleep(0.15)  # the step of a device
        loss = model(torch.randn(256, 256)).pow(2).mean()
        with backward:
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    with ledger.around():
        dist.barrier()
    if scheduler:
        scheduler.kill()
        scheduler.wait()
        os.kill(int(pids[2]), signal.SIGCONT)  # the last thing that it did may have been a stop
    dist.destroy_process_group()


main()
