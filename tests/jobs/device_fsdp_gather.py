"""A hang on a device: rank 0 alone evaluates a sharded model, whose forward gathers its weights."""

import torch
import torch.distributed as dist
from marks import about_to_block
from stand_in import Scalar
from torch.distributed.fsdp import fully_shard


def evaluate(model: torch.nn.Module) -> float:
    with torch.no_grad():
        model(torch.ones(2, 4))
    about_to_block()
    return Scalar().item()  # <- culprit, rank 0


dist.init_process_group("stand_in")
model = torch.nn.Linear(4, 4)
fully_shard(model)
model(torch.ones(2, 4)).sum().backward()
if dist.get_rank() == 0:  # <- parted
    evaluate(model)
dist.all_reduce(torch.ones(4))
about_to_block()
loss = Scalar().item()  # <- rank 1
dist.destroy_process_group()
