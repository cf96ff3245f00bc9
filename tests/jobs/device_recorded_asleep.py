"""A hang on a device whose recorder tells all: rank 1 waits for a file that nobody writes."""

import time
from pathlib import Path

import torch
import torch.distributed as dist
from stand_in import Scalar, recorded

recorded()
dist.init_process_group("nccl_stand_in")
for number in range(4):
    if number == 2 and dist.get_rank() == 1:  # <- parted
        while not Path("no-such-file").exists():
            time.sleep(1.0)  # <- culprit
    dist.all_reduce(torch.ones(4))
    loss = Scalar().item()  # <- rank 0
