"""Each rank works off as many requests as it has itself, in a `while`."""

import torch
import torch.distributed as dist
from marks import about_to_block


def work_off(requests: int) -> None:
    done = 0
    while done < requests:  # <- parted
        about_to_block()
        dist.all_reduce(torch.ones(4))  # <- culprit, rank 0
        done += 1
    about_to_block()
    dist.barrier()  # <- rank 1


dist.init_process_group("gloo")
work_off(5 - dist.get_rank())
dist.destroy_process_group()
