"""Rank 3 leaves out the call that makes pairs of ranks; only its partner misses it there."""

import torch.distributed as dist
from marks import about_to_block

dist.init_process_group("gloo")
if dist.get_rank() != 3:
    about_to_block()
    pair, _ = dist.new_subgroups(2)  # <- rank 2
about_to_block()
dist.barrier()  # <- culprit, rank 0, rank 1, rank 3
dist.destroy_process_group()
