"""A chain of three ranks exchanges borders in a batch; rank 1 leaves out the send to its right."""

import torch
import torch.distributed as dist
from marks import about_to_block


def borders(grid: torch.Tensor, rank: int, size: int) -> list[dist.P2POp]:
    ops = []
    for other in (rank - 1, rank + 1):
        if not 0 <= other < size:
            continue
        ops.append(dist.P2POp(dist.irecv, torch.empty(8), other))
        if rank != 1 or other < rank:
            ops.append(dist.P2POp(dist.isend, grid[0].contiguous(), other))
    return ops


def simulate() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    grid = torch.randn(8, 8)
    for _ in range(3):
        requests = dist.batch_isend_irecv(borders(grid, rank, size))
        for request in requests:
            about_to_block()
            request.wait()  # <- culprit, rank 0, rank 1, rank 2


dist.init_process_group("gloo")
simulate()
dist.destroy_process_group()
