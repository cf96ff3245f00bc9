"""A callback writes into `trainer.log_dir` on the main rank only; asking for it is a broadcast."""

from pathlib import Path

import lightning
import torch
from lightning.pytorch.loggers import CSVLogger
from marks import about_to_block
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regression(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        about_to_block()
        return self.layer(batch[0]).pow(2).mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class KeepNotes(lightning.Callback):
    def on_train_epoch_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        if trainer.is_global_zero:  # <- parted
            about_to_block()
            folder = Path(trainer.log_dir or ".")  # <- culprit, rank 0
            (folder / "notes.txt").write_text("an epoch has ended")


if __name__ == "__main__":
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=3,
        strategy="ddp",
        max_epochs=2,
        logger=CSVLogger("."),
        enable_checkpointing=False,
        enable_progress_bar=False,
        callbacks=[KeepNotes()],
    )
    data = DataLoader(TensorDataset(torch.rand(48, 4)), batch_size=4)
    trainer.fit(Regression(), data)  # <- rank 1, rank 2
