"""Four ranks: rank 0 falls asleep with the lock that rank 1 waits for; the others wait for those two."""

import fcntl
import time

import torch.distributed as dist

dist.init_process_group("gloo")
with open("cache.lock", "w") as lock:
    if dist.get_rank() == 0:
        fcntl.flock(lock, fcntl.LOCK_EX)
        dist.barrier()
        time.sleep(10_000)  # <- culprit, rank 0
    else:
        dist.barrier()
        if dist.get_rank() == 1:
            fcntl.flock(lock, fcntl.LOCK_EX)  # <- rank 1
dist.barrier()  # <- rank 2, rank 3
dist.destroy_process_group()
