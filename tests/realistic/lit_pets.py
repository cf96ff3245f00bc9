"""Two-class image classifier with Lightning and torchmetrics; prints a table after each validation."""
import os
from dataclasses import dataclass

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryAccuracy, BinaryF1Score


@dataclass
class Settings:
    size: int = 12
    train: int = 256
    val: int = 96
    batch_size: int = 16
    lr: float = 3e-3
    epochs: int = 3


def pets(n, size, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=g)
    x = torch.randn(n, 3, size, size, generator=g)
    x[:, 0] += y[:, None, None].float() * 0.5
    return TensorDataset(x, y)


class PetsModule(L.LightningDataModule):
    def __init__(self, s: Settings):
        super().__init__()
        self.s = s

    def setup(self, stage):
        self.train_set = pets(self.s.train, self.s.size, 0)
        self.val_set = pets(self.s.val, self.s.size, 1)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.s.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=self.s.batch_size)


class PetsNet(L.LightningModule):
    def __init__(self, s: Settings):
        super().__init__()
        self.s = s
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(8, 1)
        metrics = MetricCollection({"acc": BinaryAccuracy(), "f1": BinaryF1Score()})
        self.val_metrics = metrics.clone(prefix="val_")
        self.rows = []

    def forward(self, x):
        return self.head(self.features(x)).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.binary_cross_entropy_with_logits(self(x), y.float())

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.val_metrics.update(logits.sigmoid(), y)
        self.log("val_loss", F.binary_cross_entropy_with_logits(logits, y.float()), sync_dist=True)

    def on_validation_epoch_end(self):
        if not self.trainer.is_global_zero:
            self.val_metrics.reset()
            return
        values = self.val_metrics.compute()
        self.rows.append({"epoch": self.current_epoch, **{k: round(v.item(), 3) for k, v in values.items()}})
        self.val_metrics.reset()
        self.print_table()

    def print_table(self):
        keys = list(self.rows[0])
        print(" | ".join(keys))
        for row in self.rows:
            print(" | ".join(str(row[k]) for k in keys), flush=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.s.lr)


if __name__ == "__main__":
    s = Settings()
    L.seed_everything(9, verbose=False)
    trainer = L.Trainer(max_epochs=s.epochs, accelerator="cpu", devices=int(os.environ.get("WORLD_SIZE", 1)),
                        strategy="ddp", logger=False, enable_progress_bar=False, enable_checkpointing=False,
                        enable_model_summary=False, num_sanity_val_steps=0, log_every_n_steps=4)
    trainer.fit(PetsNet(s), datamodule=PetsModule(s))
