"""Rank 0 keeps the lock of the cache while it waits for rank 1, which waits for the lock."""

import fcntl

import torch.distributed as dist
from marks import about_to_block


def build_cache() -> None:
    dist.barrier()  # <- culprit, rank 0


def use_cache() -> None:
    dist.barrier()


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    with open("cache.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        dist.barrier()
        build_cache()
else:
    dist.barrier()
    with open("cache.lock", "w") as lock:
        about_to_block()
        fcntl.flock(lock, fcntl.LOCK_EX)  # <- rank 1
        use_cache()
dist.destroy_process_group()
