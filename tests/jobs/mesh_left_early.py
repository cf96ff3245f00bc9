"""A mesh of 2 x 2: rank 2 leaves out one call of its row, so its partner has one more than there are."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
row, column = mesh.get_group("model"), mesh.get_group("data")
for step in range(5):
    if dist.get_rank() != 2 or step != 3:
        dist.all_reduce(torch.ones(2), group=row)  # <- culprit, rank 3
    dist.all_reduce(torch.ones(2), group=column)
