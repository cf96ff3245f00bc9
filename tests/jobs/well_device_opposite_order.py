"""A healthy job: two groups are reduced in opposite orders, with a long kernel between."""

import torch
import torch.distributed as dist
from stand_in import Scalar, kernel

dist.init_process_group("stand_in")
groups = [dist.group.WORLD, dist.new_group(group_desc="metrics")]
first, second = groups if dist.get_rank() == 0 else groups[::-1]
ahead = dist.all_reduce(torch.ones(4), group=first, async_op=True)
kernel(20.0)
loss = Scalar().item()
behind = dist.all_reduce(torch.ones(4), group=second, async_op=True)
ahead.wait()
behind.wait()
loss = Scalar().item()
dist.destroy_process_group()
