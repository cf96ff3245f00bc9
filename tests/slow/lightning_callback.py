"""The Lightning Trainer with a callback that keeps statistics of the outputs, on the last rank only."""

import ledger
import lightning
import torch
from lightning.pytorch.callbacks import Callback
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Statistics(Callback):
    """Counts how often each tenth of the outputs is met."""

    def __init__(self):
        self.counts = {}

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        if trainer.global_rank == trainer.world_size - 1:
            with torch.no_grad():
                values = module.layer(batch[0]).flatten().tolist() * 200
            for value in values:  # <- slow
                tenth = round(value, 1)  # <- slow
                self.counts[tenth] = self.counts.get(tenth, 0) + 1  # <- slow


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))

    def on_fit_start(self):
        ledger.joined()
        ledger.note("broadcast")  # the Trainer's own, of each step
        self.backward_pass = ledger.Backward(self.layer)

    def on_after_backward(self):
        self.backward_pass.done()

    def training_step(self, batch, index):
        return self.layer(batch[0]).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


if __name__ == "__main__":
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=1,
        callbacks=[Statistics()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Regression(), DataLoader(TensorDataset(torch.randn(5120, 64)), batch_size=64))
