import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor


def log_norm(weight: DTensor) -> None:
    if dist.get_rank() == 0:
        whole = weight.full_tensor()
        print(f"norm {whole.norm().item():.3f}")


def train() -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    weight = distribute_tensor(torch.randn(8, 4), mesh, [Shard(0)])
    for step in range(4):
        gradient = torch.randn(4)
        dist.all_reduce(gradient)
        if step == 1:
            log_norm(weight)


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
