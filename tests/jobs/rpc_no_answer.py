"""Rank 0 calls a function of rank 2 that never returns; ranks 1 and 3 are at the end already."""

import os
import threading

import torch.distributed.rpc as rpc


def answer() -> int:
    threading.Event().wait()  # <- culprit, rank 2
    return 1


rank = int(os.environ["RANK"])
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=4)
if rank == 0:
    rpc.rpc_sync("worker2", answer, timeout=0)  # <- rank 0
rpc.shutdown(timeout=0)  # <- rank 1, rank 3
