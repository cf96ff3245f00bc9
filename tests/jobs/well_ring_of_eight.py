"""A healthy job of eight: each sends to the right and receives from the left, some late."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
for step in range(3):
    if step == 1:
        time.sleep(rank)
    received = torch.zeros(4)
    operations = [
        dist.P2POp(dist.isend, torch.full((4,), float(rank)), (rank + 1) % size),
        dist.P2POp(dist.irecv, received, (rank - 1) % size),
    ]
    for handle in dist.batch_isend_irecv(operations):
        handle.wait()
    assert received[0] == (rank - 1) % size
dist.destroy_process_group()
