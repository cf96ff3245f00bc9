"""A healthy job: two of four ranks fail in turn, and torchrun starts all four twice more."""

import os
import time

import torch
import torch.distributed as dist

attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
dist.init_process_group("gloo")
for step in range(4):
    dist.all_reduce(torch.ones(2))
    if attempt < 2 and step == 2 and dist.get_rank() == 3 - attempt:
        raise OSError("the disk is away")
    time.sleep(0.5)
dist.destroy_process_group()
