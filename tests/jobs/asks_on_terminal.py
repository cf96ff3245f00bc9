"""Rank 0 has a terminal for its input, and asks a question that its user does not see."""

import os
import pty

import torch.distributed as dist
from marks import about_to_block


def overwrite() -> bool:
    about_to_block()
    return input("overwrite the results? ") == "y"  # <- culprit, rank 0


dist.init_process_group("gloo")
if dist.get_rank() == 0:  # <- parted
    _, terminal = pty.openpty()
    os.dup2(terminal, 0)
    overwrite()
dist.barrier()  # <- rank 1
dist.destroy_process_group()
