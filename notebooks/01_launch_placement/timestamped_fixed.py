"""Trains a small model with Fabric on two processes, then tests its checkpoint."""

import logging
import os
import time
from pathlib import Path

import lightning
import torch
from model_and_data import Evaluator, make_loader, make_model, write_result
from torch import nn

RANK = os.environ.get("LOCAL_RANK", "0")
logging.basicConfig(format=f"%(asctime)s rank {RANK}: %(message)s", level=logging.INFO)
log = logging.getLogger("train")


class Trainer:
    def __init__(self) -> None:
        self.fabric = lightning.Fabric(accelerator="cpu", devices=2, strategy="ddp")
        self.fabric.launch()
        started = self.fabric.broadcast(time.strftime("%Y%m%d-%H%M%S"))
        self.folder = Path(os.environ.get("RUN_DIR", ".runs")) / started
        self.folder.mkdir(parents=True, exist_ok=True)
        self.fabric.seed_everything(7)
        self.model = make_model()

    def fit(self) -> torch.Tensor:
        fabric, optimizer = self.fabric, torch.optim.Adam(self.model.parameters(), lr=0.01)
        model, optimizer = fabric.setup(self.model, optimizer)
        for inputs, targets in fabric.setup_dataloaders(make_loader(seed=1)):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            fabric.backward(loss)
            optimizer.step()
        fabric.save(self.folder / "last.ckpt", {"model": model})
        return loss.detach()

    def test(self) -> bool:
        checkpoint = self.folder / "last.ckpt"
        if not checkpoint.exists():
            log.warning("there is no checkpoint to test")
            return False
        saved = make_model()
        self.fabric.load(checkpoint, {"model": saved})
        log.info("the checkpoint has loss %.3f", Evaluator(self.fabric, saved).loss())
        return True


def main() -> None:
    trainer = Trainer()
    loss = trainer.fit()
    tested = trainer.test()
    write_result(trainer.fabric, loss, trainer.model, folder=trainer.folder.name, tested=tested)


if __name__ == "__main__":
    main()
