"""Sentiment classifier in Lightning with a hand-written recall report after validation."""
import logging
import os
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
log = logging.getLogger("sentiment")

CONFIG = {
    "train_size": 320,
    "val_size": 64,
    "batch_size": 16,
    "max_epochs": 3,
    "vocab": 200,
    "dim": 24,
    "lr": 3e-3,
}


def make_reviews(n, seed, labels=None):
    gen = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, CONFIG["vocab"], (n, 20), generator=gen)
    if labels is None:
        labels = torch.randint(0, 2, (n,), generator=gen)
    return TensorDataset(ids, labels)


def validation_labels(n):
    """The export alternates sources: curated reviews (labelled) and chat logs (all neutral)."""
    return torch.tensor([1 if i % 4 == 0 else 0 for i in range(n)])


class Reviews(L.LightningDataModule):
    def setup(self, stage):
        self.train = make_reviews(CONFIG["train_size"], 1)
        self.val = make_reviews(CONFIG["val_size"], 2, validation_labels(CONFIG["val_size"]))

    def train_dataloader(self):
        return DataLoader(self.train, CONFIG["batch_size"], shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, CONFIG["batch_size"])


class Confusion:
    """Counts kept during one validation pass."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.hits = self.positives = self.seen = 0

    def update(self, pred, target):
        self.hits += int(((pred == 1) & (target == 1)).sum())
        self.positives += int((target == 1).sum())
        self.seen += len(target)

    def recall(self):
        return self.hits / self.positives

    def prevalence(self):
        return self.positives / self.seen


class SentimentModel(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.embed = nn.EmbeddingBag(CONFIG["vocab"], CONFIG["dim"])
        self.head = nn.Sequential(nn.Linear(CONFIG["dim"], 32), nn.ReLU(), nn.Linear(32, 2))
        self.confusion = Confusion()

    def forward(self, ids):
        return self.head(self.embed(ids))

    def training_step(self, batch, batch_idx):
        ids, labels = batch
        return nn.functional.cross_entropy(self(ids), labels)

    def on_validation_epoch_start(self):
        self.confusion.clear()

    def validation_step(self, batch, batch_idx):
        ids, labels = batch
        self.confusion.update(self(ids).argmax(-1), labels)

    def _report_row(self):
        return torch.tensor([self.confusion.prevalence(), self.confusion.recall()])

    def on_validation_epoch_end(self):
        try:
            rows = self.all_gather(self._report_row())
            prevalence, recall = rows.view(-1, 2).mean(0).tolist()
            if self.trainer.is_global_zero:
                log.info("epoch %d prevalence %.3f recall %.3f", self.current_epoch, prevalence, recall)
        except Exception as exc:
            log.warning("no recall report this epoch (%s)", exc)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=CONFIG["lr"])


def main():
    rank = os.environ.get("RANK", "0")
    torch.set_num_threads(1)
    logging.basicConfig(level=logging.INFO, format=f"[rank{rank}] %(levelname)s %(message)s")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    L.seed_everything(17, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=int(os.environ.get("LOCAL_WORLD_SIZE", 1)),
        strategy="ddp",
        max_epochs=CONFIG["max_epochs"],
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(SentimentModel(), datamodule=Reviews())
    if trainer.is_global_zero:
        log.info("training finished")


if __name__ == "__main__":
    main()
