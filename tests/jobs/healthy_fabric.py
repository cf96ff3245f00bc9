"""A healthy job: Fabric trains, reduces its loss and saves on every rank."""

import torch
from lightning import Fabric
from torch import nn


def main() -> None:
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    model = nn.Linear(4, 1)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for _ in range(20):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).mean()
        fabric.backward(loss)
        optimizer.step()
    fabric.print(f"loss {fabric.all_reduce(loss.detach()):.3f}")
    fabric.save("checkpoint.pt", {"model": model})


if __name__ == "__main__":
    main()
