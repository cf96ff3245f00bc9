"""Contrastive training on text pairs with Accelerate, metrics gathered batch by batch."""
import argparse
import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    vocab: int = 64
    dim: int = 16
    pairs: int = 300
    batch_size: int = 10
    epochs: int = 2
    lr: float = 1e-2
    min_overlap: float = 0.25


class PairSet(Dataset):
    """Pairs of token bags belonging to this process; pairs with too little overlap are filtered out."""

    def __init__(self, cfg, index, count):
        rng = random.Random(77)
        pairs = []
        for _ in range(cfg.pairs):
            a = [rng.randrange(cfg.vocab) for _ in range(12)]
            b = [t if rng.random() < 0.35 else rng.randrange(cfg.vocab) for t in a]
            pairs.append((a, b))
        mine = pairs[index::count]
        self.items = [p for p in mine if self.overlap(*p) >= cfg.min_overlap]

    @staticmethod
    def overlap(a, b):
        return len(set(a) & set(b)) / len(set(a))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        a, b = self.items[i]
        return torch.tensor(a), torch.tensor(b)


class Encoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.EmbeddingBag(cfg.vocab, cfg.dim)
        self.proj = nn.Linear(cfg.dim, cfg.dim)

    def forward(self, a, b):
        za, zb = (F.normalize(self.proj(self.emb(t)), dim=1) for t in (a, b))
        return za @ zb.T / 0.1


class RunningAccuracy:
    def __init__(self):
        self.hits, self.total = 0, 0

    def add(self, hits):
        self.hits += int(hits.sum())
        self.total += hits.numel()

    def value(self):
        return self.hits / max(1, self.total)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    parser.add_argument("--min-overlap", type=float, default=Config.min_overlap)
    args = parser.parse_args()
    cfg = Config(epochs=args.epochs, min_overlap=args.min_overlap)

    accelerator = Accelerator(cpu=True)
    set_seed(1)
    data = PairSet(cfg, accelerator.process_index, accelerator.num_processes)
    # every process has its own pairs already, so the loader is not prepared
    loader = DataLoader(data, batch_size=cfg.batch_size, shuffle=True, drop_last=True)
    model = Encoder(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    model, optimizer = accelerator.prepare(model, optimizer)

    for epoch in range(cfg.epochs):
        model.train()
        accuracy = RunningAccuracy()
        for a, b in loader:
            logits = model(a, b)
            target = torch.arange(len(a))
            loss = F.cross_entropy(logits, target)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            hits = (logits.argmax(1) == target).float()
            accuracy.add(accelerator.gather(hits))
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            print(f"epoch {epoch}: accuracy {accuracy.value():.3f}", flush=True)

    if accelerator.is_main_process:
        torch.save(accelerator.unwrap_model(model).state_dict(), "/tmp/acc_pairs.pt")
    accelerator.end_training()


if __name__ == "__main__":
    main()
