"""Rank 0 meets the others inside the block that it alone may enter first."""

import torch
from lightning.fabric import Fabric
from marks import about_to_block

fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
fabric.launch()
about_to_block()
with fabric.rank_zero_first():  # <- rank 1
    if fabric.global_rank == 0:
        print("preparing the data")
    about_to_block()
    fabric.barrier("prepared")  # <- culprit, rank 0
print(fabric.all_reduce(torch.ones(1)))
