import fcntl
import time

import torch.distributed as dist

dist.init_process_group("gloo")
with open("cache.lock", "w") as lock:
    if dist.get_rank() == 0:
        fcntl.flock(lock, fcntl.LOCK_EX)
        dist.barrier()
        time.sleep(10_000)
    else:
        dist.barrier()
        if dist.get_rank() == 1:
            fcntl.flock(lock, fcntl.LOCK_EX)
dist.barrier()
dist.destroy_process_group()
