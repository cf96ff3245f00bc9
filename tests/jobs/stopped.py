"""Rank 1 is stopped by a signal and nobody continues it."""

import os
import signal

import torch
import torch.distributed as dist
from marks import about_to_block

dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:
    about_to_block()
    os.kill(os.getpid(), signal.SIGSTOP)  # <- culprit, rank 1
dist.all_reduce(torch.ones(1))  # <- rank 0
dist.destroy_process_group()
