"""A healthy job: rank 0 leaves a lock file with the time in it, and rank 1 waits for its end."""

import time
from pathlib import Path

import torch.distributed as dist

LOCK = Path("prepare.lock")

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    LOCK.write_text(str(int(time.time())))
    dist.barrier()
    time.sleep(5)
    LOCK.unlink()
else:
    dist.barrier()
    while LOCK.exists():
        time.sleep(0.05)
dist.barrier()
dist.destroy_process_group()
