"""A language model reads text in its main process; one rank was given raw pages instead of tokens."""

import random
import re

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 200
WORDS = ["loss", "rank", "step", "gradient", "waits", "for", "the", "bucket", "<b>", "</b>"]


def batches(raw):
    """Token numbers, 32 at a time."""
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    page = " ".join(random.Random(0).choices(WORDS, k=300_000))
    for step in range(STEPS):
        words = WORDS
        if raw:
            words = re.findall(r"</?\w+>|\w+", page)  # <- slow
        numbers = [vocabulary[word] for word in random.Random(step).choices(words, k=512)]
        yield torch.tensor(numbers).view(32, 16)


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    model = nn.Sequential(nn.Embedding(len(WORDS), 64), nn.Flatten(), nn.Linear(1024, len(WORDS)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches(raw=dist.get_rank() == 2):
        loss = nn.functional.cross_entropy(model(batch), batch[:, 0])
        loss.backward()
        for parameter in model.parameters():
            with ledger.around():
                dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


main()
