"""A small language model on packed documents, trained up to a budget of tokens."""

import os
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

BLOCK = 48
PAD = 0
BUDGET = 4000


def documents(rank):
    rng = random.Random(50 + rank)
    low, high = (30, 46) if rank == 0 else (8, 24)
    while True:
        yield [rng.randrange(1, 90) for _ in range(rng.randrange(low, high))]


def blocks(stream):
    """One document a block, padded at its end."""
    for document in stream:
        ids = document[:BLOCK]
        yield ids + [PAD] * (BLOCK - len(ids))


def batches(stream, size):
    rows = []
    for block in blocks(stream):
        rows.append(block)
        if len(rows) == size:
            yield torch.tensor(rows)
            rows = []


class TinyLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(90, 32, padding_idx=PAD)
        layer = nn.TransformerEncoderLayer(32, 2, 64, batch_first=True, dropout=0.0)
        self.body = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(32, 90)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.head(self.body(self.embed(ids), mask=mask))


def loss_of(model, ids):
    logits = model(ids[:, :-1])
    return nn.functional.cross_entropy(
        logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=PAD
    )


def train(rank):
    torch.manual_seed(1)
    model = DDP(TinyLM())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = 0
    for step, ids in enumerate(batches(documents(rank), 4)):
        if step < 2:
            for group in optimizer.param_groups:
                group["lr"] = 1e-4 * (step + 1)
        real = int((ids != PAD).sum())
        if real < 5:
            continue
        loss = loss_of(model, ids)
        loss.backward()
        if step % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
        tokens += real
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
        if tokens >= BUDGET:
            break
    return model, loss.detach()


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    model, loss = train(rank)
    losses = [torch.zeros(()) for _ in range(dist.get_world_size())]
    dist.all_gather(losses, loss)
    if rank == 0:
        torch.save(model.module.state_dict(), "/tmp/unseen_lm.pt")
        print("final", losses, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
