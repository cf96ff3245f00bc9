"""A healthy job: rank 1 has twice the batches, and `Join` makes up for it."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(4, 1))
    with Join([model]):
        for _ in range(4 * (1 + dist.get_rank())):
            time.sleep(0.8)
            model(torch.randn(2, 4)).sum().backward()
    dist.barrier()


main()
dist.destroy_process_group()
