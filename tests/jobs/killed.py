"""Rank 1 is killed from outside, as an operator or a batch system does it."""

import os
import signal

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for step in range(100):
    loss = torch.ones(1)
    if dist.get_rank() == 1 and step == 3:
        os.kill(os.getpid(), signal.SIGKILL)  # <- culprit
    dist.all_reduce(loss)
dist.destroy_process_group()
