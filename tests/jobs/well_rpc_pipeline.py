"""A healthy job of four: a master has two workers compute for it, and never calls the third."""

import os
import time

import torch
import torch.distributed.rpc as rpc


def compute(value: torch.Tensor) -> torch.Tensor:
    time.sleep(2)
    return value + 1


rank = int(os.environ["RANK"])
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=4)
if rank == 0:
    for _ in range(2):
        first = rpc.remote("worker1", compute, args=(torch.ones(1),)).to_here()
        second = rpc.rpc_async("worker2", compute, args=(first,)).wait()
        assert second == 3
rpc.shutdown()
