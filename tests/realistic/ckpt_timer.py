"""Acoustic model training with checkpoints every few seconds of wall clock."""
import argparse
import logging
import os
import tempfile
import time
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger("asr")


@dataclass
class Hparams:
    n_mels: int = 24
    hidden: int = 48
    n_tokens: int = 31
    batch_size: int = 6
    epochs: int = 40
    lr: float = 3e-3
    ckpt_interval_seconds: float = 3.0
    output_folder: str = field(default_factory=tempfile.gettempdir)


class Encoder(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.rnn = nn.GRU(hp.n_mels, hp.hidden, batch_first=True)
        self.norm = nn.LayerNorm(hp.hidden)
        self.head = nn.Linear(hp.hidden, hp.n_tokens)

    def forward(self, feats):
        out, _ = self.rnn(feats)
        return self.head(self.norm(out))


def load_manifest(rank, hp):
    """Read this rank's utterances; the corpus is split by speaker, so the parts differ in size."""
    utterances = 90 if rank == 0 else 260
    gen = torch.Generator().manual_seed(100 + rank)
    items = []
    for uid in range(utterances):
        if uid % 10 == 0:
            time.sleep(0.08)  # audio headers
        frames = int(torch.randint(20, 40, (1,), generator=gen))
        items.append((torch.randn(frames, hp.n_mels, generator=gen), uid % hp.n_tokens))
    log.info("manifest: %d utterances", len(items))
    return items


def batches(items, hp, epoch, count=14):
    order = torch.randperm(len(items), generator=torch.Generator().manual_seed(epoch)).tolist()
    for start in range(count):
        picked = [items[order[(start * hp.batch_size + k) % len(order)]] for k in range(hp.batch_size)]
        feats = nn.utils.rnn.pad_sequence([f for f, _ in picked], batch_first=True)
        yield feats, torch.tensor([t for _, t in picked])


class Checkpointer:
    """Keeps the newest intra-epoch checkpoint."""

    def __init__(self, folder, interval):
        self.folder = folder
        self.interval = interval
        self.last_saved = time.monotonic()
        self.saved = 0

    def due(self):
        return time.monotonic() - self.last_saved > self.interval

    def save_if_due(self, model, optimizer, step):
        if not self.due():
            return None
        path = os.path.join(self.folder, f"asr-{os.environ.get('MASTER_PORT', '0')}-last.ckpt")
        if dist.get_rank() == 0:
            state = {"model": model.state_dict(), "optim": optimizer.state_dict(), "step": step}
            torch.save(state, path)
        dist.barrier()
        self.last_saved = time.monotonic()
        self.saved += 1
        log.info("checkpoint %d at step %d", self.saved, step)
        return path


class Brain:
    def __init__(self, hp):
        self.hp = hp
        self.rank = dist.get_rank()
        torch.manual_seed(7)
        self.model = DDP(Encoder(hp))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=hp.lr)
        self.items = load_manifest(self.rank, hp)
        self.checkpointer = Checkpointer(hp.output_folder, hp.ckpt_interval_seconds)
        self.loss_fn = nn.CrossEntropyLoss()
        self.step = 0

    def fit_batch(self, feats, targets):
        logits = self.model(feats).mean(dim=1)
        loss = self.loss_fn(logits, targets)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self):
        for epoch in range(self.hp.epochs):
            total = 0.0
            for feats, targets in batches(self.items, self.hp, epoch):
                total += self.fit_batch(feats, targets)
                self.step += 1
                time.sleep(0.08)  # stands for the real model's compute
                self.checkpointer.save_if_due(self.model, self.optimizer, self.step)
            self.on_epoch_end(epoch, total)

    def on_epoch_end(self, epoch, total):
        value = torch.tensor(total)
        dist.all_reduce(value)
        if self.rank == 0:
            log.info("epoch %d: loss %.3f", epoch, value.item() / dist.get_world_size())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--ckpt-interval-seconds", type=float, default=3.0)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format=f"[{os.environ['RANK']}] %(message)s")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    Brain(Hparams(epochs=args.epochs, ckpt_interval_seconds=args.ckpt_interval_seconds)).fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
