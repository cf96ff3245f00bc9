"""A healthy job: rank 0 unpacks a data set under a lock, and rank 1 waits for the lock."""

import fcntl
import time

import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 1:
    dist.barrier()
with open("data.lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    if dist.get_rank() == 0:
        dist.barrier()
        time.sleep(8)
dist.barrier()
dist.destroy_process_group()
