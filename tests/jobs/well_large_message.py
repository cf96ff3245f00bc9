"""A healthy job: rank 1 sends more than goes through at once, and meets rank 0 in the next call."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
message = torch.zeros(400_000_000)  # 1.6 GB
if dist.get_rank() == 0:
    dist.recv(message, 1)
    dist.barrier()
else:
    work = dist.isend(message, 0)
    dist.barrier()
    work.wait()
dist.destroy_process_group()
