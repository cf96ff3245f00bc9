"""A mesh of 2 x 2: rank 1 leaves out one call of its row, and the other two only wait for those two."""

import torch
import torch.distributed as dist
from marks import about_to_block
from torch.distributed.device_mesh import init_device_mesh

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
rank, row, column = dist.get_rank(), mesh.get_group("model"), mesh.get_group("data")
for step in range(4):
    about_to_block()
    if rank == 1 and step == 2:  # <- parted
        dist.recv(torch.zeros(4), src=0)  # <- rank 1
    else:
        dist.all_reduce(torch.ones(4), group=row)  # <- culprit, rank 0
    about_to_block()
    dist.all_reduce(torch.ones(4), group=column)  # <- rank 2, rank 3
dist.destroy_process_group()
