"""Rank 2 of four has forgotten the half of an exchange in which it sends."""

import torch
import torch.distributed as dist
from marks import about_to_block

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
left, right, received = (rank - 1) % size, (rank + 1) % size, torch.zeros(4)
operations = [dist.P2POp(dist.irecv, received, left)]
if rank != 2:
    operations.append(dist.P2POp(dist.isend, torch.ones(4), right))
for handle in dist.batch_isend_irecv(operations):
    about_to_block()
    handle.wait()  # <- culprit, rank 3
about_to_block()
dist.barrier()  # <- rank 0, rank 1, rank 2
dist.destroy_process_group()
