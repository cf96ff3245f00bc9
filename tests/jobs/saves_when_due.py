"""Eight ranks save when a clock of their own says so: two of them come to a barrier that is not due."""

import torch
import torch.distributed as dist
from marks import about_to_block


def due(step: int) -> bool:
    return step == (3 if dist.get_rank() in (2, 6) else 100)


dist.init_process_group("gloo")
for step in range(6):
    about_to_block()
    dist.all_reduce(torch.ones(4))  # <- rank 0, rank 1, rank 3, rank 4, rank 5, rank 7
    if due(step):  # <- parted
        about_to_block()
        dist.barrier()  # <- culprit, rank 2, rank 6
dist.destroy_process_group()
