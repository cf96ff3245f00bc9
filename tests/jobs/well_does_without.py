"""A healthy job whose ranks ask for things that nobody has, for some seconds, and do without them."""

from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
store = dist.distributed_c10d._get_default_store()
side = dist.new_group()
try:
    store.wait(["resume_from"], timedelta(seconds=5))
except dist.DistStoreError:
    print("starting anew")
if dist.get_rank() == 0:
    try:
        dist.monitored_barrier(side, timeout=timedelta(seconds=5))
    except RuntimeError:
        print("rank 1 skips the rehearsal")
dist.all_reduce(torch.ones(1))
dist.barrier()
