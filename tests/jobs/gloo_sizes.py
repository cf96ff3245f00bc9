"""The last batch of rank 1 is smaller, and the ranks add up their outputs as they are."""

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def evaluate(rank: int, port: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    samples = torch.randn(100_000 if rank == 0 else 99_990, 40)
    for batch in samples.split(50):
        outputs = batch.tanh()
        dist.all_reduce(outputs)  # <- culprit
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(evaluate, args=(sys.argv[1],), nprocs=2)
