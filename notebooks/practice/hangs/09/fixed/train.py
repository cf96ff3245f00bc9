import sys

import torch
from lightning import Fabric


def overwrite() -> bool:
    return "--overwrite" in sys.argv


def main() -> None:
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    fabric.barrier()
    if fabric.global_rank == 0:
        overwrite()
    fabric.all_reduce(torch.ones(1))


if __name__ == "__main__":
    main()
