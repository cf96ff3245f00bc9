"""Language-model fine-tuning with Accelerate; the update size is counted in tokens."""
import argparse
import logging
import random
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset

log = logging.getLogger("tokens")

VOCAB = 80
PAD = 0


class Documents(Dataset):
    def __init__(self, n, seed, max_len):
        rng = random.Random(seed)
        self.docs = [
            torch.tensor([rng.randrange(1, VOCAB) for _ in range(rng.randint(6, max_len))])
            for _ in range(n)
        ]

    def __len__(self):
        return len(self.docs)

    def __getitem__(self, i):
        return self.docs[i]


def pad_batch(docs):
    return nn.utils.rnn.pad_sequence(docs, batch_first=True, padding_value=PAD)


class TinyLM(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        return self.head(hidden)


@dataclass
class TokenTally:
    target: int
    pending: int = 0
    updates: int = 0
    total: int = 0

    def add(self, ids):
        n = int((ids != PAD).sum())
        self.pending += n
        self.total += n

    def reset(self):
        self.pending = 0
        self.updates += 1


@contextmanager
def accumulation_window(accelerator, model, tally):
    """Skips the gradient exchange until enough tokens were collected."""
    if tally.pending < tally.target:
        with accelerator.no_sync(model):
            yield False
    else:
        yield True
        tally.reset()


def lm_loss(model, ids):
    logits = model(ids[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=PAD)


def train(accelerator, model, optim, loader, tally, args):
    model.train()
    for epoch in range(args.epochs):
        for ids in loader:
            tally.add(ids)
            with accumulation_window(accelerator, model, tally) as ready:
                loss = lm_loss(model, ids)
                accelerator.backward(loss)
                if ready:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                    optim.step()
                    optim.zero_grad()
            if ready and tally.updates % 5 == 0:
                log.info("epoch %d update %d loss %.4f", epoch, tally.updates, loss.item())
    return tally


def summarise(accelerator, tally):
    counts = accelerator.gather(torch.tensor([tally.total], device=accelerator.device))
    if accelerator.is_main_process:
        log.info("%d updates, %d tokens", tally.updates, int(counts.sum()))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--docs", type=int, default=480)
    p.add_argument("--max-len", type=int, default=40)
    p.add_argument("--tokens-per-update", type=int, default=400)
    p.add_argument("--batch-size", type=int, default=4)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--dim", type=int, default=32)
    args = p.parse_args()

    accelerator = Accelerator(cpu=True)
    torch.set_num_threads(1)
    logging.basicConfig(level=logging.INFO, format=f"[rank{accelerator.process_index}] %(message)s")
    set_seed(6)
    loader = DataLoader(Documents(args.docs, 6, args.max_len), args.batch_size, shuffle=False, collate_fn=pad_batch)
    model = TinyLM(args.dim)
    optim = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, optim, loader = accelerator.prepare(model, optim, loader)
    tally = train(accelerator, model, optim, loader, TokenTally(args.tokens_per_update), args)
    accelerator.wait_for_everyone()
    summarise(accelerator, tally)
    accelerator.end_training()


if __name__ == "__main__":
    main()
