"""Four ranks: each makes only a group it is in, so that the first group has other members per rank."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
neighbours = [0, 1, 2] if rank < 2 else [1, 2, 3]
group = dist.new_group(neighbours)  # <- culprit
dist.all_reduce(torch.ones(4), group=group)
dist.barrier()
dist.destroy_process_group()
