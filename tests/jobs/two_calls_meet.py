"""Rank 0 has one more batch than rank 1: its gradient meets the count that rank 1 adds up."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
batches = 5 if dist.get_rank() == 0 else 4
for _ in range(batches):  # <- parted
    dist.all_reduce(torch.ones(100_000))
dist.all_reduce(torch.tensor([float(batches)]))
dist.destroy_process_group()
