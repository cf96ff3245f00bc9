"""A barrier inside a block that only rank 0 enters."""

import torch
from lightning import Fabric
from marks import about_to_block
from torch import nn


def log_samples(fabric: Fabric) -> None:
    if fabric.global_rank == 0:  # <- parted
        fabric.print("samples written")
        about_to_block()
        fabric.barrier("samples")  # <- culprit, rank 0


def main() -> None:
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    model = nn.Linear(4, 1)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for step in range(4):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).mean()
        fabric.backward(loss)  # <- rank 1
        optimizer.step()
        if step == 1:
            log_samples(fabric)
            about_to_block()


if __name__ == "__main__":
    main()
