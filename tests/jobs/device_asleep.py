"""A hang on a device: rank 1 sleeps; rank 0 waits where it reads the loss."""

import time

import torch
import torch.distributed as dist
from stand_in import Scalar


def download() -> None:
    time.sleep(6_000)  # <- culprit, rank 1


dist.init_process_group("stand_in")
for number in range(6):
    if number == 3 and dist.get_rank() == 1:  # <- parted
        download()
    dist.all_reduce(torch.ones(4))
    loss = Scalar().item()  # <- rank 0
dist.destroy_process_group()
