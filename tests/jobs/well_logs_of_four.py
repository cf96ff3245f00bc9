"""A healthy job of four ranks: a model logs values and a metric of all, and asks for its folder."""

import time

import lightning
import torch
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MeanMetric


class Regression(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.mean = MeanMetric()

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        loss = self.layer(batch[0]).pow(2).mean()
        self.mean.update(loss.detach())
        self.log_dict({"loss": loss, "largest": batch[0].max()}, sync_dist=True)
        return loss

    def on_train_epoch_end(self) -> None:
        self.log("mean", self.mean.compute())
        if self.trainer.log_dir and self.trainer.is_global_zero:
            time.sleep(4.0)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


if __name__ == "__main__":
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=4,
        strategy="ddp",
        max_epochs=2,
        logger=CSVLogger("."),
        enable_progress_bar=False,
    )
    trainer.fit(Regression(), DataLoader(TensorDataset(torch.rand(64, 4)), batch_size=4))
