"""Rank 0, which has started rank 1 itself, is killed; its child is left alone with a busy step."""

import os
import signal

import torch
from lightning import Fabric
from torch import nn


def main() -> None:
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    model = nn.Linear(4, 1)
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    for step in range(6):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).mean()
        if step == 3 and fabric.global_rank == 0:
            os.kill(os.getpid(), signal.SIGKILL)  # <- culprit
        fabric.backward(loss)
        optimizer.step()


if __name__ == "__main__":
    main()
