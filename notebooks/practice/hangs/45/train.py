import fcntl
import time

import torch.distributed as dist


def locked(file) -> None:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(0.5)


dist.init_process_group("gloo")
with open("cache.lock", "w") as lock:
    if dist.get_rank() == 0:
        locked(lock)
        dist.barrier()
        dist.barrier()
    else:
        dist.barrier()
        locked(lock)
        dist.barrier()
dist.destroy_process_group()
