"""Text classification; the vocabulary is built from the texts that a rank reads."""

import collections
import os
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

WORDS = [f"w{number}" for number in range(400)]


def read_texts(rank):
    rng = random.Random(60 + rank)
    return [
        (" ".join(rng.choices(WORDS, k=rng.randrange(4, 12))), rng.randrange(2))
        for _ in range(64)
    ]


class Vocabulary:
    def __init__(self, texts, least=1):
        counts = collections.Counter(word for text, _ in texts for word in text.split())
        kept = sorted(word for word, count in counts.items() if count >= least)
        self.index = {word: number + 1 for number, word in enumerate(kept)}

    def __len__(self):
        return len(self.index) + 1

    def encode(self, text):
        return [self.index.get(word, 0) for word in text.split()]


class BagClassifier(nn.Module):
    def __init__(self, words, width=16):
        super().__init__()
        self.bag = nn.EmbeddingBag(words, width)
        self.head = nn.Linear(width, 2)

    def forward(self, ids, offsets):
        return self.head(self.bag(ids, offsets))


def make_batches(texts, vocabulary, size=8):
    for start in range(0, len(texts), size):
        rows = texts[start : start + size]
        ids, offsets = [], []
        for text, _ in rows:
            offsets.append(len(ids))
            ids.extend(vocabulary.encode(text))
        labels = torch.tensor([label for _, label in rows])
        yield torch.tensor(ids), torch.tensor(offsets), labels


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    texts = read_texts(rank)
    vocabulary = Vocabulary(texts)
    model = DDP(BagClassifier(len(vocabulary)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(3):
        for ids, offsets, labels in make_batches(texts, vocabulary):
            loss = nn.functional.cross_entropy(model(ids, offsets), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
