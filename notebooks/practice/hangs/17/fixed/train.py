import torch
from lightning import Fabric
from torch import nn


def save(fabric: Fabric, model: nn.Module, path: str) -> None:
    fabric.save(path, {"model": model})


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
        fabric.backward(loss)
        optimizer.step()


if __name__ == "__main__":
    main()
