"""Denoising network with Lightning; the best model is exported together with a model card."""
import argparse
import os
import tempfile

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Denoiser(L.LightningModule):
    def __init__(self, dim=16, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, dim))
        self.val_sum = 0.0
        self.val_n = 0

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        (clean,) = batch
        loss = F.mse_loss(self(clean + 0.3 * torch.randn_like(clean)), clean)
        self.log("train_loss", loss, on_epoch=True, prog_bar=False)
        return loss

    def on_validation_epoch_start(self):
        self.val_sum, self.val_n = 0.0, 0

    def validation_step(self, batch, batch_idx):
        (clean,) = batch
        loss = F.mse_loss(self(clean), clean)
        self.val_sum += loss.item() * len(clean)
        self.val_n += len(clean)
        self.log("val_loss", loss, sync_dist=True)

    @property
    def val_mse(self):
        return self.val_sum / max(1, self.val_n)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


class BestExport(L.Callback):
    """Writes a checkpoint and a small model card for every new best validation error."""

    def __init__(self, directory):
        self.directory = directory
        self.best = float("inf")
        self.exports = 0

    def on_validation_epoch_end(self, trainer, pl_module):
        if trainer.sanity_checking:
            return
        score = pl_module.val_mse
        if score < self.best:
            self.best = score
            self.export(trainer, score)

    def export(self, trainer, score):
        self.exports += 1
        path = os.path.join(self.directory, "best.ckpt")
        trainer.save_checkpoint(path, weights_only=True)
        if trainer.is_global_zero:
            with open(os.path.join(self.directory, "card.md"), "w") as f:
                f.write(f"# Denoiser\n\nvalidation mse: {score:.5f}\nepoch: {trainer.current_epoch}\n")


class NoiseWarmup(L.Callback):
    """Lowers the learning rate after the first epochs."""

    def on_train_epoch_end(self, trainer, pl_module):
        if trainer.current_epoch == 3:
            for group in trainer.optimizers[0].param_groups:
                group["lr"] *= 0.5


def make_data(n, dim, seed):
    g = torch.Generator().manual_seed(seed)
    basis = torch.randn(4, dim, generator=torch.Generator().manual_seed(0))
    x = torch.randn(n, 4, generator=g) @ basis
    # the tail of the recording is dominated by an outdoor session
    x[n // 2:] = x[n // 2:].clamp(-0.2, 0.2) + 3.0
    return TensorDataset(x)


class SplitSampler(torch.utils.data.Sampler):
    """Contiguous part of the data for each process, keeps sessions together."""

    def __init__(self, n, rank, world):
        self.idx = list(range(rank * n // world, (rank + 1) * n // world))

    def __iter__(self):
        return iter(self.idx)

    def __len__(self):
        return len(self.idx)


class Data(L.LightningDataModule):
    def train_dataloader(self):
        ds = make_data(256, 16, 1)
        return DataLoader(ds, batch_size=16, sampler=SplitSampler(len(ds), self.trainer.global_rank, self.trainer.world_size))

    def val_dataloader(self):
        ds = make_data(128, 16, 2)
        return DataLoader(ds, batch_size=32, sampler=SplitSampler(len(ds), self.trainer.global_rank, self.trainer.world_size))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-epochs", type=int, default=30)
    parser.add_argument("--lr", type=float, default=5e-2)
    args = parser.parse_args()
    L.seed_everything(4, verbose=False)
    out = os.path.join(tempfile.gettempdir(), "lit_denoiser")
    os.makedirs(out, exist_ok=True)
    trainer = L.Trainer(max_epochs=args.max_epochs, accelerator="cpu", devices=2, strategy="ddp", logger=False,
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                        use_distributed_sampler=False, callbacks=[BestExport(out), NoiseWarmup()])
    trainer.fit(Denoiser(lr=args.lr), datamodule=Data())
    trainer.print("done")


if __name__ == "__main__":
    main()
