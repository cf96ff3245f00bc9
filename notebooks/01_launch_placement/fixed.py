"""Trains a small model with Fabric on two processes; a new run first logs a baseline."""

import argparse
import logging
import os
import sys
from pathlib import Path

import lightning
import torch
from model_and_data import Evaluator, make_loader, make_model, write_result
from torch import nn

RANK = os.environ.get("LOCAL_RANK", "0")
logging.basicConfig(format=f"%(asctime)s rank {RANK}: %(message)s", level=logging.INFO)
log = logging.getLogger("train")


class Trainer:
    def __init__(self, fabric: lightning.Fabric, options: argparse.Namespace) -> None:
        self.fabric, self.options = fabric, options
        self.folder = Path(os.environ.get("RUN_DIR", ".runs/demo"))
        self.new = fabric.broadcast(not self.folder.exists())
        log.info("the run directory %s", "is new" if self.new else "exists")
        if not self.new and options.if_exists == "skip":
            sys.exit(0)
        if not self.new and options.if_exists == "ask":
            answer = input("Overwrite this run? [y/n] ") if fabric.global_rank == 0 else ""
            if fabric.broadcast(answer) != "y":
                sys.exit(0)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.fabric.seed_everything(7)
        self.baseline: float | None = None
        if self.new and options.baseline:
            self.baseline = Evaluator(self.fabric, make_model(options.baseline)).loss()
            log.info("the untrained model has loss %.3f", self.baseline)

    def fit(self) -> None:
        fabric, model = self.fabric, make_model()
        if self.options.barrier:
            fabric.barrier()
        model, optimizer = fabric.setup(model, torch.optim.Adam(model.parameters(), lr=0.01))
        loader = fabric.setup_dataloaders(make_loader(seed=1))
        for epoch in range(2):
            for inputs, targets in loader:
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(inputs), targets)
                fabric.backward(loss)
                optimizer.step()
            fabric.print(f"epoch {epoch}: loss {fabric.all_reduce(loss.detach()):.3f}")
        fabric.save(self.folder / "last.ckpt", {"model": model})
        baseline = self.baseline is not None
        write_result(fabric, loss.detach(), model, folder=self.folder.name, baseline=baseline)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accelerator", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--baseline", type=int, default=16, help="width of its model, 0 for no baseline")
    parser.add_argument("--if-exists", choices=["overwrite", "ask", "skip"], default="overwrite")
    parser.add_argument("--barrier", action="store_true", help="wait for all ranks before fit()")
    options = parser.parse_args()
    fabric = lightning.Fabric(accelerator=options.accelerator, devices=2, strategy="ddp")
    fabric.launch()
    Trainer(fabric, options).fit()


if __name__ == "__main__":
    main()
