"""Rank 1 sleeps before a step that rank 0 has reached."""

import time

import torch
import torch.distributed as dist

SECONDS = 600


def warm_up() -> None:
    time.sleep(SECONDS)  # <- culprit, rank 1


dist.init_process_group("gloo")
if dist.get_rank() == 1:  # <- parted
    warm_up()
dist.all_reduce(torch.ones(1))  # <- rank 0
dist.destroy_process_group()
