"""Reductions run in the background and nobody waits for them; rank 1 has issued one less."""

import torch
import torch.distributed as dist
from marks import about_to_block


def accumulate(gradients: "list[torch.Tensor]") -> "list[dist.Work]":
    handles = []
    for number, gradient in enumerate(gradients):
        if dist.get_rank() == 1 and number == 2:  # <- parted
            continue  # the layer is frozen here
        handles.append(dist.all_reduce(gradient, async_op=True))  # <- culprit
    return handles


def train() -> None:
    gradients = [torch.randn(4) for _ in range(4)]
    handles = accumulate(gradients)
    print(f"{len(handles)} reductions on their way")
    about_to_block()
    dist.barrier()  # <- rank 0, rank 1


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
