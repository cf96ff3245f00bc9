"""Forecast of half-hourly prices with an LSTM (Lightning), with a cost-control callback."""
import os
from dataclasses import dataclass

import lightning.pytorch as pl
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, DistributedSampler


@dataclass
class HParams:
    window: int = 16
    hidden: int = 16
    batch_size: int = 16
    lr: float = 1e-2
    epochs: int = 6
    target: float = 0.08


class PriceWindows(Dataset):
    """Sliding windows over two markets stored one after the other."""

    def __init__(self, hp, n=640):
        g = torch.Generator().manual_seed(3)
        t = torch.arange(n + hp.window + 1) / 8
        calm = t.sin() * 0.5 + 0.02 * torch.randn(len(t), generator=g)
        wild = t.sin() * 0.5 + 0.6 * torch.randn(len(t), generator=g)
        self.series = [calm, wild]
        self.n, self.w = n, hp.window

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        # even samples from the first market, odd ones from the second
        s = self.series[i % 2]
        return s[i:i + self.w, None], s[i + self.w]


class Forecaster(pl.LightningModule):
    def __init__(self, hp: HParams):
        super().__init__()
        self.hp = hp
        self.rnn = nn.LSTM(1, hp.hidden, batch_first=True)
        self.head = nn.Linear(hp.hidden, 1)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.head(h[:, -1]).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.mse_loss(self(x), y)
        self.log("train/mse", loss)
        return {"loss": loss, "n": len(y)}

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hp.lr)
        sched = torch.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.7)
        return {"optimizer": opt, "lr_scheduler": sched}


class CostControl(pl.Callback):
    """Ends the training once the smoothed error is at the target, further steps would only cost money."""

    def __init__(self, target, warmup_steps=10, decay=0.9):
        self.target, self.warmup_steps, self.decay = target, warmup_steps, decay
        self.smoothed = None

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        value = outputs["loss"].item()
        self.smoothed = value if self.smoothed is None else self.decay * self.smoothed + (1 - self.decay) * value
        if trainer.global_step < self.warmup_steps:
            return
        if self.smoothed <= self.target:
            trainer.should_stop = True


class StepTimer(pl.Callback):
    def __init__(self):
        self.steps = 0

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.steps += 1

    def on_train_end(self, trainer, pl_module):
        counts = pl_module.all_gather(torch.tensor(self.steps))
        if trainer.is_global_zero:
            print("steps per process:", counts.tolist(), flush=True)


class Prices(pl.LightningDataModule):
    """Keeps the order of the samples, so that a process sees the same market throughout."""

    def __init__(self, hp):
        super().__init__()
        self.hp = hp

    def train_dataloader(self):
        windows = PriceWindows(self.hp)
        sampler = DistributedSampler(windows, self.trainer.world_size, self.trainer.global_rank, shuffle=False)
        return DataLoader(windows, batch_size=self.hp.batch_size, sampler=sampler, drop_last=True)


def main():
    hp = HParams()
    pl.seed_everything(1, verbose=False)
    trainer = pl.Trainer(
        max_epochs=hp.epochs,
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[CostControl(hp.target), StepTimer()],
    )
    trainer.fit(Forecaster(hp), datamodule=Prices(hp))


if __name__ == "__main__":
    main()
