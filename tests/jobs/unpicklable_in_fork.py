"""Forked ranks start spawned workers for a data set that cannot be pickled: all in library code."""

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regression(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        (inputs,) = batch
        return self.layer(inputs).pow(2).mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    data = TensorDataset(torch.randn(32, 4))
    loader = DataLoader(
        data,
        batch_size=4,
        num_workers=1,
        multiprocessing_context="spawn",
        worker_init_fn=lambda number: None,
    )
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp_fork",
        fast_dev_run=2,
        enable_progress_bar=False,
    )
    trainer.fit(Regression(), loader)  # <- culprit
