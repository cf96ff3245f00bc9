"""Rank 0 opens a FIFO for its progress; the monitor that was to read it was never started."""

import os

import torch.distributed as dist
from marks import about_to_block


def report_progress(text: str) -> None:
    about_to_block()
    with open("progress", "w") as progress:  # <- culprit, rank 0
        progress.write(text)


dist.init_process_group("gloo")
if dist.get_rank() == 0:  # <- parted
    os.mkfifo("progress")
    report_progress("epoch 1")
dist.barrier()  # <- rank 1
dist.destroy_process_group()
