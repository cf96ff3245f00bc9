"""A healthy job: rank 1 only serves the calls of rank 0, which works meanwhile."""

import os
import time

import torch
import torch.distributed.rpc as rpc

rank = int(os.environ["RANK"])
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2)
if rank == 0:
    for _ in range(2):
        time.sleep(3)
        assert rpc.rpc_sync("worker1", torch.add, args=(torch.ones(1), 1)) == 2
rpc.shutdown()
