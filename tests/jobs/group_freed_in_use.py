"""The last reference to a group goes with a DDP model, while a worker still has a tensor to give back.

torch waits for that thread with the interpreter lock held, and the thread waits for the lock:
https://github.com/pytorch/pytorch/issues/56297. It takes some turns until the two meet.
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    model = DistributedDataParallel(torch.nn.Linear(64, 64))
    model(torch.randn(8, 64)).sum().backward()
    for _ in range(3):
        dist.all_gather([torch.zeros(200)], torch.ones(200) + 1)
    dist.destroy_process_group()


while True:
    train()  # <- culprit, rank 0
