"""What to call is chosen in one line, and not all ranks choose the same."""

import torch
import torch.distributed as dist
from marks import about_to_block


def average() -> None:
    dist.all_reduce(torch.ones(4))  # <- culprit, rank 0


def synchronize() -> None:
    dist.barrier()  # <- rank 1


def main() -> None:
    rank = dist.get_rank()
    dist.barrier()
    about_to_block()
    average() if rank == 0 else synchronize()  # <- parted


dist.init_process_group("gloo")
main()
dist.destroy_process_group()
