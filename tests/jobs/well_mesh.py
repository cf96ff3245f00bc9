"""A healthy job of four ranks: the groups of one mesh dimension do different things."""

import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "tp"))
tp, stage = mesh.get_group("tp"), mesh.get_local_rank("pp")
for _ in range(2):
    if dist.get_rank() in (1, 2):
        time.sleep(4)
    if stage == 0:
        dist.all_reduce(torch.ones(4), group=tp)
    else:
        dist.all_gather([torch.ones(2), torch.ones(2)], torch.ones(2), group=tp)
dist.barrier()
dist.destroy_process_group()
