"""Two loops of equal length; in one turn of rank 1 the call is left out, so that it is done first."""

import torch
import torch.distributed as dist
from marks import about_to_block


def train(losses: list[float]) -> None:
    for loss in losses:
        if loss < 1:  # <- parted
            about_to_block()
            dist.all_reduce(torch.tensor([loss]))  # <- culprit, rank 0
    about_to_block()
    dist.barrier()  # <- rank 1


dist.init_process_group("gloo")
train([0.5, 0.4, 0.3, 0.2] if dist.get_rank() == 0 else [0.5, 1.5, 0.3, 0.2])
dist.destroy_process_group()
