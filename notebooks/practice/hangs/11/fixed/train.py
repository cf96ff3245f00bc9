import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def address(port: int) -> str:
    return f"tcp://127.0.0.1:{port}"


def train(rank: int, port: int) -> None:
    dist.init_process_group("gloo", init_method=address(port), rank=rank, world_size=2)
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(int(sys.argv[1]),), nprocs=2)
