"""Click-through model trained from a streamed log with Lightning DDP."""
import argparse
import logging
import os
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

warnings.filterwarnings("ignore")
log = logging.getLogger("clicks")

AGENTS = ["chrome", "crawler", "firefox", "safari"]


def synth_event(i):
    """One line of the access log."""
    return {
        "id": i,
        "agent": AGENTS[i % len(AGENTS)],
        "user": i * 7919 % 500,
        "item": i * 104729 % 300,
        "clicked": (i * 31 // 7) % 3 == 0,
    }


class ClickLog(IterableDataset):
    """Each process reads every world_size-th line of the log."""

    def __init__(self, n_events, rank, world_size):
        self.n_events = n_events
        self.rank = rank
        self.world_size = world_size
        self.dropped = 0

    def _lines(self):
        for i in range(self.rank, self.n_events, self.world_size):
            yield synth_event(i)

    def __iter__(self):
        self.dropped = 0
        for event in self._lines():
            if event["agent"] == "crawler":
                self.dropped += 1
                continue
            yield (
                torch.tensor(event["user"]),
                torch.tensor(event["item"]),
                torch.tensor(float(event["clicked"])),
            )


class ClickData(L.LightningDataModule):
    def __init__(self, n_events, batch_size):
        super().__init__()
        self.n_events = n_events
        self.batch_size = batch_size

    def setup(self, stage):
        self.stream = ClickLog(self.n_events, self.trainer.global_rank, self.trainer.world_size)

    def train_dataloader(self):
        return DataLoader(self.stream, batch_size=self.batch_size, drop_last=True)


class TwoTower(L.LightningModule):
    def __init__(self, dim=16, lr=1e-2):
        super().__init__()
        self.users = nn.Embedding(500, dim)
        self.items = nn.Embedding(300, dim)
        self.bias = nn.Parameter(torch.zeros(1))
        self.lr = lr
        self.events_seen = 0

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(-1) + self.bias

    def training_step(self, batch, batch_idx):
        user, item, clicked = batch
        loss = nn.functional.binary_cross_entropy_with_logits(self(user, item), clicked)
        self.events_seen += len(user)
        if batch_idx % 20 == 0 and self.global_rank == 0:
            log.info("epoch %d batch %d loss %.4f", self.current_epoch, batch_idx, loss.item())
        return loss

    def on_train_epoch_end(self):
        counts = self.all_gather(torch.tensor([self.events_seen, self.trainer.datamodule.stream.dropped]))
        if self.global_rank == 0:
            used, dropped = counts.view(-1, 2).sum(0).tolist()
            log.info("epoch %d: %d events used, %d dropped", self.current_epoch, used, dropped)

    def configure_optimizers(self):
        return torch.optim.Adagrad(self.parameters(), lr=self.lr)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--events", type=int, default=1600)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--epochs", type=int, default=2)
    args = p.parse_args()

    torch.set_num_threads(1)
    logging.basicConfig(level=logging.INFO, format=f"[rank{os.environ.get('RANK', 0)}] %(message)s")
    L.seed_everything(3, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=int(os.environ.get("LOCAL_WORLD_SIZE", 1)),
        strategy="ddp",
        max_epochs=args.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(TwoTower(), datamodule=ClickData(args.events, args.batch_size))
    log.info("training finished")


if __name__ == "__main__":
    main()
