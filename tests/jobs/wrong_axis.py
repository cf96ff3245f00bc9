"""Eight ranks, two groups of four: rank 5 sums over all ranks where the others sum over their group."""

import torch
import torch.distributed as dist
from marks import about_to_block

dist.init_process_group("gloo")
rank = dist.get_rank()
halves = [dist.new_group([0, 1, 2, 3]), dist.new_group([4, 5, 6, 7])]
mine = halves[rank // 4]
for step in range(4):
    group = None if rank == 5 and step == 2 else mine  # <- parted
    about_to_block()
    dist.all_reduce(torch.ones(4), group=group)  # <- culprit, rank 4, rank 5, rank 6, rank 7
about_to_block()
dist.barrier()  # <- rank 0, rank 1, rank 2, rank 3
dist.destroy_process_group()
