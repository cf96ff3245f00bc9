"""A healthy job: rank 1 sets a key of the store late, and rank 0 waits for it."""

import sys
import time
from datetime import timedelta

import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank: int, port: int) -> None:
    store = dist.TCPStore("127.0.0.1", port, 2, is_master=rank == 0, timeout=timedelta(minutes=5))
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    if rank == 0:
        assert store.get("run-name") == b"first"
    else:
        time.sleep(6)
        store.set("run-name", "first")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(int(sys.argv[1]),), nprocs=2)
