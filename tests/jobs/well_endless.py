"""A healthy job that trains for ever; the limit of its run ends it."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
while True:
    time.sleep(0.1 + 0.2 * dist.get_rank())
    dist.all_reduce(torch.ones(1))
