"""A forgotten breakpoint in one rank: the debugger waits for a command that nobody types."""

import torch
import torch.distributed as dist
from marks import about_to_block


def check(loss: torch.Tensor) -> None:
    if dist.get_rank() == 1:  # <- parted
        print(loss)
        about_to_block()
        breakpoint()  # <- culprit, rank 1


dist.init_process_group("gloo")
check(torch.ones(1))
dist.all_reduce(torch.ones(1))  # <- rank 0
dist.destroy_process_group()
