"""With ddp_spawn, a callback saves a checkpoint on rank 0 only, though save_checkpoint is for all."""

import lightning
import torch
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


class SaveEveryEpoch(lightning.Callback):
    def on_train_epoch_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        if trainer.is_global_zero:  # <- parted
            about_to_block()
            trainer.save_checkpoint("epoch.ckpt")  # <- culprit, rank 0


if __name__ == "__main__":
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp_spawn",
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        callbacks=[SaveEveryEpoch()],
    )
    trainer.fit(Regression(), DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=4))
