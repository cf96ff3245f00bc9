"""A monitored barrier gives up after four seconds and names rank 1, which waits for a licence."""

import time
from datetime import timedelta

import torch
import torch.distributed as dist


def fetch_licence() -> None:
    while True:
        time.sleep(1)  # <- culprit, rank 1


dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 1:
    fetch_licence()
dist.monitored_barrier(timeout=timedelta(seconds=4))
dist.destroy_process_group()
