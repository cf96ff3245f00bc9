"""Four ranks: only those that write a shard come to the barrier, the others go on."""

import torch
import torch.distributed as dist
from marks import about_to_block


def write_shards(step: int) -> None:
    if dist.get_rank() % 2 == 0:  # <- parted
        print(f"shard of step {step} written")
        about_to_block()
        dist.barrier()  # <- culprit, rank 0, rank 2


def train() -> None:
    for step in range(6):
        gradient = torch.randn(4)
        about_to_block()
        dist.all_reduce(gradient)  # <- rank 1, rank 3
        if step == 3:
            write_shards(step)


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
