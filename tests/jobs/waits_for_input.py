"""Rank 0 asks its user a question, in a job that has no user."""

import torch
from lightning import Fabric


def overwrite() -> bool:
    return input("overwrite the results? ") == "y"  # <- culprit, rank 0


def main() -> None:
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    fabric.barrier()
    if fabric.global_rank == 0:  # <- parted
        overwrite()
    fabric.all_reduce(torch.ones(1))  # <- rank 1


if __name__ == "__main__":
    main()
