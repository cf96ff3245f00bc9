"""Segmentation of toy organs with Lightning; Dice is reported for each organ."""
import logging
import os

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
log = logging.getLogger("organs")

ORGANS = ("background", "liver", "kidney", "cyst")


class Scans(Dataset):
    """16x16 scans with boxes in them; a cyst is rare."""

    def __init__(self, size, cysts, seed):
        gen = torch.Generator().manual_seed(seed)
        self.images = torch.randn(size, 1, 16, 16, generator=gen)
        self.masks = torch.zeros(size, 16, 16, dtype=torch.long)
        for i in range(size):
            self._paint(i, 1, 2 + i % 3, 3)
            self._paint(i, 2, 9, 8 + i % 2)
            if i in cysts:
                self._paint(i, 3, 12, 1)

    def _paint(self, i, label, top, left):
        self.masks[i, top:top + 4, left:left + 4] = label
        self.images[i, 0, top:top + 4, left:left + 4] += label

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.masks[i]


class OrganData(L.LightningDataModule):
    def __init__(self, batch_size=4):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        self.train_set = Scans(64, cysts=set(range(0, 64, 5)), seed=1)
        self.val_set = Scans(24, cysts={5, 11, 17}, seed=2)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=self.batch_size)


class Segmenter(L.LightningModule):
    def __init__(self, width=8, lr=5e-3):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, len(ORGANS), 1),
        )
        self.lr = lr
        self.register_buffer("overlap", torch.zeros(len(ORGANS)), persistent=False)
        self.register_buffer("support", torch.zeros(len(ORGANS)), persistent=False)
        self.register_buffer("guessed", torch.zeros(len(ORGANS)), persistent=False)

    def training_step(self, batch, batch_idx):
        images, masks = batch
        loss = nn.functional.cross_entropy(self.net(images), masks)
        self.log("train_loss", loss, on_step=True, on_epoch=False)
        return loss

    def on_validation_epoch_start(self):
        for counter in (self.overlap, self.support, self.guessed):
            counter.zero_()

    def validation_step(self, batch, batch_idx):
        images, masks = batch
        guess = self.net(images).argmax(dim=1)
        for label in range(len(ORGANS)):
            truth, found = masks == label, guess == label
            self.overlap[label] += (truth & found).sum()
            self.support[label] += truth.sum()
            self.guessed[label] += found.sum()

    def organ_dice(self):
        dice = 2 * self.overlap / (self.support + self.guessed).clamp(min=1)
        return {
            f"val_dice/{organ}": dice[label]
            for label, organ in enumerate(ORGANS)
            if self.support[label] > 0
        }

    def on_validation_epoch_end(self):
        scores = self.organ_dice()
        log.info("rank %d: %s", self.global_rank, {k: round(float(v), 3) for k, v in scores.items()})
        self.log_dict(scores, sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main():
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    torch.set_num_threads(1)
    L.seed_everything(3, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu", strategy="ddp", devices=int(os.environ.get("LOCAL_WORLD_SIZE", 2)), max_epochs=5,
        num_sanity_val_steps=0, enable_checkpointing=False, logger=False, enable_progress_bar=False,
        enable_model_summary=False, log_every_n_steps=4,
    )
    trainer.fit(Segmenter(), datamodule=OrganData())
    log.info("final metrics: %s", trainer.callback_metrics)


if __name__ == "__main__":
    main()
