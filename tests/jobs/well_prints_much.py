"""A healthy job: its output is very long, and one line of it, too."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for number in range(100_000):
    print(f"rank {dist.get_rank()} step {number} loss {1 / (number + 1):.6f}")
print("x" * 2_000_000)
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
