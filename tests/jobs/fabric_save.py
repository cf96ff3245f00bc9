"""The checkpoint is saved by rank 0 only, while rank 1 goes on training."""

import torch
from lightning import Fabric
from marks import about_to_block
from torch import nn


def save(fabric: Fabric, model: nn.Module, path: str) -> None:
    if fabric.global_rank == 0:  # <- parted
        about_to_block()
        fabric.save(path, {"model": model})  # <- culprit, rank 0


def main() -> None:
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    model = nn.Linear(4, 1)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for step in range(4):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).mean()
        if step == 2:
            save(fabric, model, "checkpoint.pt")
            about_to_block()
        fabric.backward(loss)  # <- rank 1
        optimizer.step()


if __name__ == "__main__":
    main()
