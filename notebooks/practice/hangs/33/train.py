import torch
import torch.distributed as dist


def due(step: int) -> bool:
    return step == (3 if dist.get_rank() in (2, 6) else 100)


dist.init_process_group("gloo")
for step in range(6):
    dist.all_reduce(torch.ones(4))
    if due(step):
        dist.barrier()
dist.destroy_process_group()
