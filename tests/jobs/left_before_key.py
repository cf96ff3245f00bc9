"""Rank 1 returns before it has told rank 0, through the store, that its data is ready."""

import torch
import torch.distributed as dist
from marks import about_to_block

dist.init_process_group("gloo")
store = dist.distributed_c10d._get_default_store()
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 0:
    store.wait(["data of rank 1"])  # <- rank 0
dist.destroy_process_group()
about_to_block()  # rank 0 waits for good once rank 1 has gone
