"""Rank 1 sleeps five seconds, then comes: nothing is wrong."""

import time

import torch
import torch.distributed as dist

SECONDS = 5


def warm_up() -> None:
    time.sleep(SECONDS)


dist.init_process_group("gloo")
if dist.get_rank() == 1:
    warm_up()
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
