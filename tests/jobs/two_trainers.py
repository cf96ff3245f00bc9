"""The start script of every rank starts its trainer twice, and both join."""

import os
import time

import torch
import torch.distributed as dist


def join() -> None:
    dist.init_process_group(  # <- culprit
        "gloo",
        init_method=f"tcp://127.0.0.1:{os.environ['MASTER_PORT']}",
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
    )


join()
for _ in range(4):
    time.sleep(1)
    dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
