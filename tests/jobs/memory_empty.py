"""Rank 1 asks for a buffer that no machine has."""

import torch
import torch.distributed as dist


def make_buffer(rank: int) -> torch.Tensor:
    rows = 1_000 if rank == 0 else 10**13
    return torch.empty(rows, 128)  # <- culprit


dist.init_process_group("gloo")
dist.barrier()
dist.all_reduce(make_buffer(dist.get_rank()))
dist.destroy_process_group()
