import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WORLD_SIZE = 3


def train(rank: int, port: str) -> None:
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD_SIZE
    )
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1],), nprocs=WORLD_SIZE)
