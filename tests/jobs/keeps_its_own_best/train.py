"""Lightning: a price model with checkpoints of its best epochs."""

import logging
import warnings
from pathlib import Path

import lightning.pytorch as pl
import torch
import yaml
from prices import PriceData
from retention import KeepBest
from torch import nn

log = logging.getLogger("prices.train")


class PriceModel(pl.LightningModule):
    def __init__(self, features: int, hidden: int, lr: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x).squeeze(1)

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], index: int) -> torch.Tensor:
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: tuple[torch.Tensor, torch.Tensor], index: int) -> None:
        x, y = batch
        self.log("val_error", (self(x) - y).abs().mean(), on_epoch=True)

    def configure_optimizers(self) -> dict:
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9)
        return {
            "optimizer": optimizer,
            "lr_scheduler": torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9),
        }


class Chronicle(pl.Callback):
    """Says how far the training is."""

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        loss = trainer.callback_metrics["train_loss"].item()
        log.info("epoch %d: loss %.3f", trainer.current_epoch, loss)


def main() -> None:
    config = yaml.safe_load(Path("prices.yaml").read_text())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    warnings.filterwarnings("ignore", ".*does not have many workers.*")
    pl.seed_everything(config["seed"])
    if config["model"]["hidden"] < 16:
        log.warning("a hidden layer of %d is small", config["model"]["hidden"])
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=config["devices"],
        strategy="ddp",
        max_epochs=config["epochs"],
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
        callbacks=[Chronicle(), KeepBest(Path(config["checkpoints"]), config["keep"])],
    )
    model = PriceModel(**config["model"])
    trainer.fit(model, PriceData(config["data"], config["model"]["features"]))
    if trainer.is_global_zero:
        log.info("trained for %d epochs", trainer.current_epoch)


if __name__ == "__main__":
    main()
