"""DDP with gradient accumulation until a number of tokens has been seen."""

import contextlib
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

VOCAB = 64
TOKENS_PER_STEP = 600


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 24)
        self.rnn = nn.GRU(24, 32, batch_first=True)
        self.out = nn.Linear(32, VOCAB)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        return self.out(hidden)


class Corpus:
    """Micro-batches of four sentences; the files of the second rank have shorter sentences."""

    def __init__(self, rank, count):
        self.generator = torch.Generator().manual_seed(100 + rank)
        self.longest = 60 if rank == 0 else 34
        self.count = count

    def __len__(self):
        return self.count

    def __iter__(self):
        for _ in range(self.count):
            length = int(torch.randint(20, self.longest, (1,), generator=self.generator))
            yield torch.randint(0, VOCAB, (4, length), generator=self.generator)


def sync_context(model, is_last):
    return contextlib.nullcontext() if is_last else model.no_sync()


def train_epoch(model, optimizer, corpus):
    seen = 0
    steps = 0
    for number, ids in enumerate(corpus):
        seen += ids.numel()
        is_last = seen >= TOKENS_PER_STEP or number + 1 == len(corpus)
        with sync_context(model, is_last):
            logits = model(ids[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            loss.backward()
        if is_last:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            seen = 0
            steps += 1
    return steps


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(3)
    model = DDP(Tagger())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        steps = train_epoch(model, optimizer, Corpus(rank, 24))
        dist.barrier()
        if rank == 0:
            print(f"epoch {epoch}: {steps} optimizer steps", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
