"""A healthy job: at each step another rank is slow."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for step in range(6):
    if step % dist.get_world_size() == dist.get_rank():
        time.sleep(2.5)
    dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
