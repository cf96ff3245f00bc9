"""Builds (or reuses) a vocabulary cache, then trains a next-token model with Accelerate."""
import json
import os
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

WORDS = "the a sun moon river stone green quick runs sleeps over under and while bird cloud".split()


class Corpus:
    def __init__(self, index, sentences=300):
        rng = random.Random(5)
        self.sentences = [[rng.choice(WORDS) for _ in range(8)] for _ in range(sentences)]
        if index > 0:
            time.sleep(1.0)  # the raw text comes over the network for all but the first process

    def counts(self):
        c = Counter()
        for s in self.sentences:
            c.update(s)
        return c


class Vocabulary:
    def __init__(self, tokens):
        self.index = {t: i for i, t in enumerate(tokens)}

    def __len__(self):
        return len(self.index)

    def encode(self, sentence):
        return [self.index[w] for w in sentence]

    @classmethod
    def load(cls, path):
        return cls(json.loads(Path(path).read_text()))

    @staticmethod
    def build(corpus, path):
        tokens = [t for t, _ in corpus.counts().most_common()]
        Path(path).write_text(json.dumps(tokens))


class NextToken(nn.Module):
    def __init__(self, vocab, dim=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        return self.out(h)


def get_vocabulary(accelerator, corpus, path):
    if not path.exists():
        with accelerator.main_process_first():
            if not path.exists():
                Vocabulary.build(corpus, path)
    return Vocabulary.load(path)


def main():
    accelerator = Accelerator(cpu=True)
    set_seed(0)
    run = os.environ.get("TORCHELASTIC_RUN_ID", "local")
    cache = Path(tempfile.gettempdir()) / f"acc_vocab_{run}"
    cache.mkdir(exist_ok=True)

    corpus = Corpus(accelerator.process_index)
    vocab = get_vocabulary(accelerator, corpus, cache / "vocab.json")
    ids = torch.tensor([vocab.encode(s) for s in corpus.sentences])
    loader = DataLoader(TensorDataset(ids), batch_size=20, shuffle=True)
    model = NextToken(len(vocab))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    for epoch in range(2):
        for (batch,) in loader:
            loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.4f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
