"""A healthy job: a backward pass of seconds sends the gradients of its last layers early."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: torch.Tensor, seconds: float) -> torch.Tensor:
        ctx.seconds = seconds
        return x.clone()

    @staticmethod
    def backward(ctx: object, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        end = time.monotonic() + ctx.seconds
        while time.monotonic() < end:
            torch.randn(300, 300) @ torch.randn(300, 300)
        return grad, None


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(1000, 1000), nn.Linear(1000, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(Slow.apply(self.first(x), 2.0 + 4.0 * dist.get_rank()))


def main() -> None:
    model = DistributedDataParallel(Net(), bucket_cap_mb=1)
    for _ in range(2):
        model(torch.randn(2, 1000)).sum().backward()


dist.init_process_group("gloo")
main()
dist.destroy_process_group()
