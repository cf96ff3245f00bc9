"""A healthy job: each rank issues a reduction and does something else before it waits for it."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for _ in range(2):
    work = dist.all_reduce(torch.ones(1), async_op=True)
    time.sleep(1.0 + 3.0 * dist.get_rank())
    work.wait()
dist.destroy_process_group()
