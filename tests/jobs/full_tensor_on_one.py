"""Only rank 0 gathers the sharded weight to look at its norm."""

import torch
import torch.distributed as dist
from marks import about_to_block
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor


def log_norm(weight: DTensor) -> None:
    if dist.get_rank() == 0:  # <- parted
        about_to_block()
        whole = weight.full_tensor()  # <- culprit, rank 0
        print(f"norm {whole.norm().item():.3f}")


def train() -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    weight = distribute_tensor(torch.randn(8, 4), mesh, [Shard(0)])
    for step in range(4):
        gradient = torch.randn(4)
        dist.all_reduce(gradient)  # <- rank 1
        if step == 1:
            log_norm(weight)
            about_to_block()


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
