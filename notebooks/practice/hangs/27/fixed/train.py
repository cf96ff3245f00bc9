import torch
import torch.distributed as dist


def exchange(grid: torch.Tensor, other: int) -> torch.Tensor:
    border = torch.empty(grid.shape[1])
    received = dist.irecv(border, src=other)
    sent = dist.isend(grid[0].contiguous(), dst=other)
    received.wait()
    sent.wait()
    return border


def simulate() -> None:
    grid = torch.randn(8, 8)
    for _ in range(10):
        border = exchange(grid, 1 - dist.get_rank())
        grid = 0.5 * grid + 0.5 * border


dist.init_process_group("gloo")
simulate()
dist.destroy_process_group()
