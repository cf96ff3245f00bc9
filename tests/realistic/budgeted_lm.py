"""Character language model trained for a fixed wall-clock budget."""
import argparse
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class LMConfig:
    vocab: int = 48
    dim: int = 32
    seq_len: int = 24
    batch_size: int = 8
    lr: float = 3e-3
    budget_s: float = 3.0
    log_every: int = 50


class CharLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.Embedding(cfg.vocab, cfg.dim)
        self.rnn = nn.GRU(cfg.dim, cfg.dim, batch_first=True)
        self.out = nn.Linear(cfg.dim, cfg.vocab)

    def forward(self, x):
        h, _ = self.rnn(self.emb(x))
        return self.out(h)


class TextShard:
    """A shard of tokenized text. Rank 0 also builds the frequency table for the report."""

    def __init__(self, cfg, rank):
        self.cfg = cfg
        g = torch.Generator().manual_seed(100 + rank)
        self.tokens = torch.randint(0, cfg.vocab, (20000,), generator=g)
        self.gen = torch.Generator().manual_seed(rank)

    def sample(self):
        c = self.cfg
        starts = torch.randint(0, len(self.tokens) - c.seq_len - 1, (c.batch_size,), generator=self.gen)
        x = torch.stack([self.tokens[s:s + c.seq_len] for s in starts])
        y = torch.stack([self.tokens[s + 1:s + c.seq_len + 1] for s in starts])
        return x, y


class Timer:
    def __init__(self, budget_s):
        self.budget_s = budget_s
        self.started = time.monotonic()

    def elapsed(self):
        return time.monotonic() - self.started

    def expired(self):
        return self.elapsed() >= self.budget_s


def frequency_table(tokens, vocab):
    counts = torch.bincount(tokens, minlength=vocab)
    time.sleep(1.0)  # writing the table to the shared drive takes a moment
    return counts / counts.sum()


def train(model, shard, optimizer, timer, cfg, rank):
    step = 0
    while not timer.expired():
        x, y = shard.sample()
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        step += 1
        if step % cfg.log_every == 0:
            if rank == 0:
                print(f"step {step} loss {loss.item():.4f} ({timer.elapsed():.1f}s)", flush=True)
    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", type=float, default=LMConfig.budget_s)
    args = parser.parse_args()
    cfg = LMConfig(budget_s=args.budget)

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    shard = TextShard(cfg, rank)
    model = DDP(CharLM(cfg))
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)

    table = frequency_table(shard.tokens, cfg.vocab) if rank == 0 else None
    timer = Timer(cfg.budget_s)
    steps = train(model, shard, optimizer, timer, cfg, rank)

    counts = [torch.zeros(1, dtype=torch.long) for _ in range(world)]
    dist.all_gather(counts, torch.tensor([steps]))
    if rank == 0:
        print("steps per rank", [int(c) for c in counts], "top token", int(table.argmax()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
