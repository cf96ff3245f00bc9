"""Equal steps for 65 s; once, one rank is stopped for five, as by somebody's ctrl-Z."""

import os
import subprocess
import sys
import time

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 300
STOP = """
import os, signal, sys, time
os.kill(int(sys.argv[1]), signal.SIGSTOP)
time.sleep(5)
os.kill(int(sys.argv[1]), signal.SIGCONT)
"""


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    with ledger.around():
        model = DistributedDataParallel(nn.Linear(64, 64))
    backward = ledger.Backward(model)
    helper = None
    for step in range(STEPS):
        if step == 120 and dist.get_rank() == 2:
            helper = subprocess.Popen([sys.executable, "-c", STOP, str(os.getpid())])
        time.sleep(0.2)
        with backward:
            model(torch.randn(64, 64)).pow(2).mean().backward()
        model.zero_grad()
    if helper:
        helper.wait()
    dist.destroy_process_group()


main()
