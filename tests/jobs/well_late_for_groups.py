"""A healthy job: rank 3 comes late to a new group of pairs, where only its partner waits for it."""

import time

import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 3:
    time.sleep(8)
pair, _ = dist.new_subgroups(2)
dist.barrier()
dist.barrier(group=pair)
dist.destroy_process_group()
