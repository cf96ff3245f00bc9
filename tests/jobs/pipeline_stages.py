"""A pipeline of three stages: the first cuts its data into fewer micro-batches than the next expects."""

import torch
import torch.distributed as dist
from marks import about_to_block

EXPECTED = 5


def first_stage(data: torch.Tensor) -> None:
    for batch in data.split(4):
        dist.send(batch.tanh(), dst=1)


def next_stage(rank: int) -> None:
    for _ in range(EXPECTED):
        batch = torch.empty(4, 8)
        about_to_block()
        dist.recv(batch, src=rank - 1)  # <- rank 1, rank 2
        if rank + 1 < dist.get_world_size():
            dist.send(batch.relu(), dst=rank + 1)


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    first_stage(torch.randn(16, 8))
else:
    next_stage(dist.get_rank())
about_to_block()
dist.barrier()  # <- culprit, rank 0
dist.destroy_process_group()
