"""The part of the data that rank 1 reads does not exist."""

import torch
from lightning import Fabric

PARTS = ["part-0.txt"]


def load(rank: int) -> torch.Tensor:
    name = PARTS[rank]  # <- culprit
    return torch.ones(len(name))


def main() -> None:
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    fabric.barrier()
    print(fabric.all_reduce(load(fabric.global_rank)))


if __name__ == "__main__":
    main()
