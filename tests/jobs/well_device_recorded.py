"""A healthy job on a device whose recorder tells all: long kernels, and a rank that comes late."""

import time

import torch
import torch.distributed as dist
from stand_in import Scalar, kernel, recorded

recorded()
dist.init_process_group("nccl_stand_in")
for number in range(3):
    if number == 1 and dist.get_rank() == 1:
        time.sleep(12.0)
    dist.all_reduce(torch.ones(4))
    kernel(8.0 if number == 2 else 0.2)
    loss = Scalar().item()
dist.destroy_process_group()
