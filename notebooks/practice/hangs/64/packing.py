"""Packs sentences into batches of about as many tokens each."""

import random
from collections.abc import Iterator

from corpus import Corpus


class TokenBatches:
    """The batches of one rank: every rank has the same number of sentences."""

    def __init__(self, corpus: Corpus, tokens: int, rank: int, world: int) -> None:
        self.tokens = tokens
        each = len(corpus) // world
        self.sentences = [corpus[at] for at in range(rank * each, (rank + 1) * each)]
        self.longest = max(map(len, self.sentences))

    def shuffle(self, epoch: int) -> None:
        random.Random(epoch).shuffle(self.sentences)

    def __iter__(self) -> Iterator[list[list[int]]]:
        batch: list[list[int]] = []
        width = 0
        for sentence in self.sentences:
            widest = max(width, len(sentence))
            if batch and widest * (len(batch) + 1) > self.tokens:
                yield batch
                batch, widest = [], len(sentence)
            batch.append(sentence)
            width = widest
        if batch:
            yield batch
