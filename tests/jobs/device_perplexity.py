"""A hang on a device: rank 1 broadcasts once more; no name in the line tells that it reads a value."""

import math

import torch
import torch.distributed as dist
from marks import about_to_block
from stand_in import Scalar

dist.init_process_group("stand_in")
for number in range(5):
    if number == 3 and dist.get_rank() == 1:  # <- parted
        dist.broadcast(torch.ones(4), src=1)
    dist.all_reduce(torch.ones(4))
    about_to_block()
    perplexity = math.exp(Scalar())  # <- culprit, rank 0, rank 1
dist.destroy_process_group()
