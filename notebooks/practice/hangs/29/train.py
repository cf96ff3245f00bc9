import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
rank, row, column = dist.get_rank(), mesh.get_group("model"), mesh.get_group("data")
for step in range(4):
    if rank == 1 and step == 2:
        dist.recv(torch.zeros(4), src=0)
    else:
        dist.all_reduce(torch.ones(4), group=row)
    dist.all_reduce(torch.ones(4), group=column)
dist.destroy_process_group()
