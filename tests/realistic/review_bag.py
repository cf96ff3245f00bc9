"""Train a small bag-of-words review classifier with token-budget batching.

Launch: torchrun --standalone --nproc-per-node=2 review_bag.py
"""
import argparse
import logging
import os
import random
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("review_bag")


@dataclass
class Config:
    vocab: int = 512
    dim: int = 32
    classes: int = 3
    docs: int = 400
    token_budget: int = 512
    epochs: int = 3
    lr: float = 5e-3
    seed: int = 7


class Corpus:
    """Documents of varying length, generated from a fixed seed."""

    def __init__(self, cfg: Config):
        rng = random.Random(cfg.seed)
        self.docs = []
        for _ in range(cfg.docs):
            label = rng.randrange(cfg.classes)
            length = int(rng.lognormvariate(3.0, 0.6)) + 4
            base = label * (cfg.vocab // cfg.classes)
            tokens = [base + rng.randrange(cfg.vocab // cfg.classes) for _ in range(length)]
            self.docs.append((tokens, label))

    def shard(self, rank, world_size):
        # sort by length so that documents in a batch are of similar size
        ordered = sorted(self.docs, key=lambda d: len(d[0]))
        per_rank = len(ordered) // world_size
        return ordered[rank * per_rank:(rank + 1) * per_rank]


class TokenBudgetBatcher:
    """Packs documents into batches of at most `budget` tokens."""

    def __init__(self, docs, budget, seed):
        self.docs = list(docs)
        self.budget = budget
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        order = list(range(len(self.docs)))
        random.Random(self.seed + self.epoch).shuffle(order)
        batch, size = [], 0
        for i in order:
            n = len(self.docs[i][0])
            if batch and size + n > self.budget:
                yield self.collate(batch)
                batch, size = [], 0
            batch.append(self.docs[i])
            size += n
        if batch:
            yield self.collate(batch)

    @staticmethod
    def collate(batch):
        offsets, flat = [], []
        for tokens, _ in batch:
            offsets.append(len(flat))
            flat.extend(tokens)
        labels = torch.tensor([label for _, label in batch])
        return torch.tensor(flat), torch.tensor(offsets), labels


class BagClassifier(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.emb = nn.EmbeddingBag(cfg.vocab, cfg.dim, mode="mean")
        self.head = nn.Sequential(nn.Linear(cfg.dim, cfg.dim), nn.ReLU(), nn.Linear(cfg.dim, cfg.classes))

    def forward(self, tokens, offsets):
        return self.head(self.emb(tokens, offsets))


def train_epoch(model, batches, optimizer):
    model.train()
    total, correct, loss_sum = 0, 0, 0.0
    for tokens, offsets, labels in batches:
        optimizer.zero_grad(set_to_none=True)
        logits = model(tokens, offsets)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() * len(labels)
        correct += (logits.argmax(1) == labels).sum().item()
        total += len(labels)
    return {"loss": loss_sum / total, "acc": correct / total, "n": total}


def gather_reports(report, rank, world_size):
    reports = [None] * world_size if rank == 0 else None
    dist.gather_object(report, reports, dst=0)
    return reports


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    parser.add_argument("--token-budget", type=int, default=Config.token_budget)
    args = parser.parse_args()
    cfg = Config(epochs=args.epochs, token_budget=args.token_budget)

    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(cfg.seed)

    docs = Corpus(cfg).shard(rank, world_size)
    batcher = TokenBudgetBatcher(docs, cfg.token_budget, cfg.seed)
    model = DDP(BagClassifier(cfg))
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)

    for epoch in range(cfg.epochs):
        batcher.set_epoch(epoch)
        report = train_epoch(model, batcher, optimizer)
        reports = gather_reports(report, rank, world_size)
        if rank == 0:
            n = sum(r["n"] for r in reports)
            loss = sum(r["loss"] * r["n"] for r in reports) / n
            acc = sum(r["acc"] * r["n"] for r in reports) / n
            log.info("epoch %d: loss %.4f acc %.3f over %d documents", epoch, loss, acc, n)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
