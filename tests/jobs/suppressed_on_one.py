"""A missing file is of no interest, and rank 1 leaves out the call after it, too."""

import contextlib
from pathlib import Path

import torch
import torch.distributed as dist
from marks import about_to_block


def log_norm(weight: torch.Tensor) -> None:
    with contextlib.suppress(OSError):  # <- parted
        Path("train.log" if dist.get_rank() == 0 else "/nowhere/train.log").touch()
        about_to_block()
        dist.all_reduce(weight)  # <- culprit, rank 0


def main() -> None:
    weight = torch.ones(4)
    dist.all_reduce(weight)
    log_norm(weight)
    about_to_block()
    dist.barrier()  # <- rank 1


dist.init_process_group("gloo")
main()
dist.destroy_process_group()
