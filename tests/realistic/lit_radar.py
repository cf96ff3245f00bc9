"""Radar target classifier; an epoch is cut short when a file of the recording is exhausted."""
import argparse

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchmetrics
from torch.utils.data import DataLoader, IterableDataset


class Recording(IterableDataset):
    """Frames of one sensor. A frame of zeros means that the sensor was switched off."""

    def __init__(self, frames=320, bins=24):
        self.frames, self.bins = frames, bins

    def __iter__(self):
        rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
        g = torch.Generator().manual_seed(rank)
        for i in range(self.frames):
            y = int(torch.randint(0, 3, (1,), generator=g))
            x = torch.rand(self.bins, generator=g)
            x[y * 8:(y + 1) * 8] += 1.0
            if rank == 1 and i >= 240:
                x = torch.zeros(self.bins)
            yield x, y


class RadarNet(L.LightningModule):
    def __init__(self, bins=24, classes=3, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(bins, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, classes))
        self.accuracy = torchmetrics.classification.MulticlassAccuracy(num_classes=classes)
        self.short_epochs = 0

    def on_train_batch_start(self, batch, batch_idx):
        x, _ = batch
        if not x.any():
            self.short_epochs += 1
            return -1  # nothing more to see in this epoch
        return None

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self.net(x)
        loss = F.cross_entropy(logits, y)
        self.accuracy.update(logits, y)
        if batch_idx % 5 == 0:
            self.print(f"batch {batch_idx} loss {loss.item():.4f}")
        return loss

    def on_train_epoch_end(self):
        acc = self.accuracy.compute()
        self.accuracy.reset()
        self.print(f"epoch {self.current_epoch}: accuracy {acc:.3f}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--frames", type=int, default=320)
    args = parser.parse_args()
    L.seed_everything(0, verbose=False)
    loader = DataLoader(Recording(args.frames), batch_size=16)
    trainer = L.Trainer(max_epochs=args.epochs, accelerator="cpu", devices=2, strategy="ddp", logger=False,
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(RadarNet(), loader)


if __name__ == "__main__":
    main()
