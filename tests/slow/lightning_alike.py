"""The Lightning Trainer with the strategy ddp; both ranks do the same work."""

import time

import ledger
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))

    def on_fit_start(self):
        ledger.joined()
        self.backward_pass = ledger.Backward(self.layer)

    def on_after_backward(self):
        self.backward_pass.done()

    def training_step(self, batch, index):
        time.sleep(0.1)  # the step of a device
        return self.layer(batch[0]).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Regression(), DataLoader(TensorDataset(torch.randn(2560, 64)), batch_size=16))
