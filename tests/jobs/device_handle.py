"""A hang on a device: rank 1 has one gradient less, of which the handles are waited for."""

import torch
import torch.distributed as dist
from marks import about_to_block
from stand_in import Scalar


def reduce(gradients: list[torch.Tensor]) -> None:
    handles = [dist.all_reduce(gradient, async_op=True) for gradient in gradients]
    for handle in handles:
        handle.wait()


dist.init_process_group("stand_in")
for number in range(4):
    unused = number == 2 and dist.get_rank() == 1
    reduce([torch.ones(4)] * (2 if unused else 3))
    dist.broadcast(torch.ones(1), src=0)
    about_to_block()
    loss = Scalar().item()  # <- culprit, rank 0, rank 1
dist.destroy_process_group()
