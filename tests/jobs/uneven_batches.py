"""The data of rank 2 ends one batch early; it gathers its metrics while the others still train."""

import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from marks import about_to_block

SAMPLES = 101


def gather_metrics(losses: list[float]) -> list[float]:
    gathered: list[list[float]] = [[] for _ in range(dist.get_world_size())]
    about_to_block()
    dist.all_gather_object(gathered, losses)  # <- culprit, rank 2
    return [loss for part in gathered for loss in part]


def train(rank: int, port: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=3)
    weight, losses = torch.zeros(4), []
    for batch in torch.randn(SAMPLES, 4)[rank::3].split(33):  # <- parted
        losses.append((batch @ weight).pow(2).mean().item())
        gradient = batch.mean(dim=0)
        about_to_block()
        dist.all_reduce(gradient)  # <- rank 0, rank 1
        weight -= 0.1 * gradient
    gather_metrics(losses)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1],), nprocs=3)
