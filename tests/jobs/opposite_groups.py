"""Two groups of the same ranks, used by the ranks in opposite order."""

import torch
import torch.distributed as dist
from marks import about_to_block

dist.init_process_group("gloo")
losses = dist.new_group([0, 1])
metrics = dist.new_group([0, 1])
loss, metric = torch.ones(1), torch.ones(1)
about_to_block()
if dist.get_rank() == 0:  # <- parted
    dist.all_reduce(loss, group=losses)  # <- culprit, rank 0
    dist.all_reduce(metric, group=metrics)
else:
    dist.all_reduce(metric, group=metrics)  # <- rank 1
    dist.all_reduce(loss, group=losses)
dist.destroy_process_group()
