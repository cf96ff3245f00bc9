"""Fabric with three ranks: rank 0 gathers the predictions it wants to plot."""

import torch
from lightning import Fabric
from marks import about_to_block
from torch import nn


def plot(fabric: Fabric, predictions: torch.Tensor) -> None:
    if fabric.is_global_zero:  # <- parted
        about_to_block()
        gathered = fabric.all_gather(predictions)  # <- culprit, rank 0
        print(f"plots {gathered.numel()} points")


def main() -> None:
    fabric = Fabric(accelerator="cpu", devices=3, strategy="ddp")
    fabric.launch()
    model = nn.Linear(4, 1)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for step in range(4):
        optimizer.zero_grad()
        predictions = model(torch.ones(2, 4))
        about_to_block()
        fabric.backward(predictions.mean())  # <- rank 1, rank 2
        optimizer.step()
        if step == 1:
            plot(fabric, predictions.detach())


if __name__ == "__main__":
    main()
