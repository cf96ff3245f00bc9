"""A healthy job: another program, which is not to be looked into, holds a lock file for a while."""

import torch.distributed as dist
from filelock import FileLock

dist.init_process_group("gloo")
with FileLock("cache.lock"):
    dist.get_rank()
dist.barrier()
dist.destroy_process_group()
