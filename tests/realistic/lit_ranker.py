"""Pairwise ranking model. Started with torchrun; validation covers the query log of each worker."""
import argparse
import os

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import TQDMProgressBar
from torch.utils.data import DataLoader, Dataset


class PairLog(Dataset):
    def __init__(self, n, dim, seed):
        g = torch.Generator().manual_seed(seed)
        self.a = torch.randn(n, dim, generator=g)
        self.b = torch.randn(n, dim, generator=g)
        self.y = (self.a.sum(1) > self.b.sum(1)).float()

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.a[i], self.b[i], self.y[i]


class Ranker(L.LightningModule):
    def __init__(self, dim, lr):
        super().__init__()
        self.save_hyperparameters()
        self.score = nn.Sequential(nn.Linear(dim, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, a, b):
        return (self.score(a) - self.score(b)).squeeze(-1)

    def training_step(self, batch, batch_idx):
        a, b, y = batch
        loss = F.binary_cross_entropy_with_logits(self(a, b), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        a, b, y = batch
        margin = self(a, b)
        hit = ((margin > 0).float() == y).float().mean()
        # averaged over workers batch by batch, for the live dashboard
        live = self.all_gather(hit).mean()
        self.log("val_pair_acc", live)

    def on_validation_epoch_end(self):
        value = self.trainer.callback_metrics.get("val_pair_acc")
        if value is not None:
            self.print(f"epoch {self.current_epoch}: pair accuracy {value:.3f}")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9)


def validation_limit(path):
    """Number of validation batches: as many as the worker's query log fills."""
    size = os.path.getsize(path)
    return max(1, size // 4096)


def write_query_log(rank):
    path = f"/tmp/lit_ranker_queries.{rank}.log"
    with open(path, "wb") as f:
        f.write(b"q" * (4096 * (6 - 2 * rank)))
    return path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dim", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()

    L.seed_everything(0, verbose=False)
    rank = int(os.environ["RANK"])
    trainer = L.Trainer(
        max_epochs=args.epochs,
        accelerator="cpu",
        devices=int(os.environ["LOCAL_WORLD_SIZE"]),
        strategy="ddp",
        limit_val_batches=validation_limit(write_query_log(rank)),
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    train = DataLoader(PairLog(256, args.dim, 1), batch_size=16)
    val = DataLoader(PairLog(256, args.dim, 2), batch_size=16)
    trainer.fit(Ranker(args.dim, args.lr), train, val)


if __name__ == "__main__":
    main()
