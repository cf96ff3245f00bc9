"""A healthy job: rank 1 sleeps between two steps, to stay below a rate limit."""

import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 1:
    time.sleep(float(sys.argv[1]))
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
