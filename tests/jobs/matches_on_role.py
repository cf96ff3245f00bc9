"""Three ranks with two roles: the actors average, the critic waits for them in a barrier."""

import torch
import torch.distributed as dist
from marks import about_to_block


def step(role: str) -> None:
    about_to_block()
    match role:  # <- parted
        case "actor":
            dist.all_reduce(torch.ones(4))  # <- rank 0, rank 2
        case "critic":
            dist.barrier()  # <- culprit, rank 1


dist.init_process_group("gloo")
step(["actor", "critic", "actor"][dist.get_rank()])
dist.destroy_process_group()
