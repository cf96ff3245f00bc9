"""Trains a small network with Fabric on two processes; a run that exists already is resumed."""

import argparse
import json
import logging
import os
import sys
import time
from pathlib import Path

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

RANK = os.environ.get("LOCAL_RANK", "0")
logging.basicConfig(format=f"%(asctime)s rank {RANK}: %(message)s", level=logging.INFO)
log = logging.getLogger("train")


def make_model(width: int = 16) -> nn.Module:
    return nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 1))


def make_loader(seed: int) -> DataLoader[tuple[torch.Tensor, ...]]:
    inputs = torch.randn(80, 10, generator=torch.Generator().manual_seed(seed))
    return DataLoader(TensorDataset(inputs, inputs.sum(dim=1, keepdim=True)), batch_size=10)


class Evaluator:
    def __init__(self, fabric: lightning.Fabric, model: nn.Module) -> None:
        self.model = fabric.setup_module(model).eval()
        self.loader = fabric.setup_dataloaders(make_loader(seed=2))

    @torch.no_grad()
    def loss(self) -> float:
        losses = (nn.functional.mse_loss(self.model(x), y).item() for x, y in self.loader)
        return sum(losses) / len(self.loader)


class Trainer:
    def __init__(self, fabric: lightning.Fabric, if_exists: str) -> None:
        self.fabric = fabric
        folder = Path(os.environ.get("RUN_DIR", f".runs/{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"))
        self.folder, self.resume = fabric.broadcast((folder, folder.exists()))
        log.info("the run directory %s", "is there" if self.resume else "is new")
        if self.resume and if_exists == "leave":
            sys.exit(0)
        if self.resume and if_exists == "ask":
            answer = input("Resume? [y/n] ") if fabric.global_rank == 0 else ""
            if fabric.broadcast(answer) != "y":
                sys.exit(0)
        self.folder.mkdir(parents=True, exist_ok=True)
        fabric.seed_everything(7)
        if self.resume and if_exists == "evaluate":
            log.info("starts from loss %.3f", Evaluator(self.fabric, make_model()).loss())
        if self.resume and if_exists == "compare":
            log.info("has to beat loss %.3f", Evaluator(self.fabric, make_model(width=32)).loss())

    def fit(self) -> None:
        fabric, model = self.fabric, make_model()
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
        write_result(fabric, 2 * len(loader), loss.detach(), model)


def write_result(fabric: lightning.Fabric, steps: int, loss: torch.Tensor, model: nn.Module) -> None:
    result = {
        "rank": fabric.global_rank,
        "world_size": fabric.world_size,
        "steps": steps,
        "loss": fabric.all_reduce(loss).item(),
        "parameters": torch.cat([p.detach().flatten() for p in model.parameters()]).sum().item(),
    }
    if "RESULTS_DIR" in os.environ:
        path = Path(os.environ["RESULTS_DIR"]) / f"result-rank{fabric.global_rank}.json"
        path.write_text(json.dumps(result))
    print(f"rank {fabric.global_rank} of {fabric.world_size} done: {result}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    ways = ["continue", "evaluate", "compare", "ask", "leave"]
    parser.add_argument("--if-exists", choices=ways, default="evaluate", help="what to do first")
    parser.add_argument("--accelerator", choices=["cpu", "gpu"], default="cpu")
    options = parser.parse_args()
    fabric = lightning.Fabric(accelerator=options.accelerator, devices=2, strategy="ddp")
    fabric.launch()
    Trainer(fabric, options.if_exists).fit()


if __name__ == "__main__":
    main()
