"""Each rank sums its losses with the others', but rank 1 has kept one more of them."""

import torch
import torch.distributed as dist
from marks import about_to_block

dist.init_process_group("gloo")
rank = dist.get_rank()
losses = torch.rand(3 + rank)
about_to_block()
dist.all_reduce(losses)  # <- culprit, rank 1
dist.barrier()  # <- rank 0
dist.destroy_process_group()
