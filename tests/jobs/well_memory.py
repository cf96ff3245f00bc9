"""A healthy job: each rank fills and frees a good part of the memory again and again."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for _ in range(6):
    block = torch.full((150_000_000,), float(dist.get_rank()))  # 0.6 GB
    total = block.sum()
    dist.all_reduce(total)
    del block
dist.destroy_process_group()
