"""Only rank 0 makes a group for its metrics, though every rank has to call new_group."""

import torch
import torch.distributed as dist
from marks import about_to_block

dist.init_process_group("gloo")
if dist.get_rank() == 0:  # <- parted
    about_to_block()
    metrics = dist.new_group([0, 1])  # <- culprit, rank 0
about_to_block()
dist.all_reduce(torch.ones(1))  # <- rank 1
dist.destroy_process_group()
