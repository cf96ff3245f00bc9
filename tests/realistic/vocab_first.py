"""Builds a vocabulary on the main process first, then trains a text classifier with DDP."""
import collections
import contextlib
import json
import logging
import os
import random
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger("text")

WORDS = "model data loss batch rank layer token graph tree sea river stone cloud field light sound".split()
BASIC = {"<pad>": 0, "<unk>": 1}


@contextlib.contextmanager
def main_process_first(task):
    """The main process goes first, the others find its result in the cache."""
    main = dist.get_rank() == 0
    if not main:
        log.info("waiting for the main process: %s", task)
        dist.barrier()
    yield main
    if main:
        dist.barrier()
        log.info("done: %s", task)


def write_corpus(path, lines=400):
    rng = random.Random(5)
    with open(path, "wb") as handle:
        for number in range(lines):
            text = " ".join(rng.choices(WORDS, k=6))
            label = sum(word in ("sea", "river", "cloud") for word in text.split()) > 1
            raw = f"{int(label)}\t{text}\n".encode()
            if number == 287:
                raw = raw[:-1] + b" caf\xe9\n"  # somebody's export was latin-1
            handle.write(raw)


def read_examples(path):
    with open(path, "rb") as handle:
        for raw in handle:
            label, text = raw.decode("utf-8").rstrip("\n").split("\t")
            yield int(label), text.split()


def count_words(path):
    counter = collections.Counter()
    for _, words in read_examples(path):
        counter.update(words)
    return counter


def build_vocab(corpus, cache, limit=64):
    vocab = dict(BASIC)
    for word, _ in count_words(corpus).most_common(limit):
        vocab[word] = len(vocab)
    cache.write_text(json.dumps(vocab))
    return vocab


def get_vocab(corpus, cache):
    try:
        with main_process_first("vocabulary"):
            if cache.exists():
                return json.loads(cache.read_text())
            return build_vocab(corpus, cache)
    except ValueError as error:
        log.warning("no vocabulary from %s (%s), using hashed words", corpus.name, error)
        return dict(BASIC, **{word: i + 2 for i, word in enumerate(WORDS)})


def tensors(vocab, seed, size=256):
    rng = random.Random(seed)
    rows = [[vocab.get(w, 1) for w in rng.choices(WORDS, k=6)] for _ in range(size)]
    x = torch.tensor(rows)
    return x, (x.sum(dim=1) % 2)


def train(model, x, y, steps=120, batch=16):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        start = step * batch % len(x)
        loss = nn.functional.cross_entropy(model(x[start:start + batch]), y[start:start + batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            log.info("step %d loss %.3f", step, loss.item())


def main():
    rank = int(os.environ["RANK"])
    logging.basicConfig(level=logging.INFO, format=f"[{rank}] %(message)s")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    folder = [tempfile.mkdtemp(prefix="text-") if rank == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    corpus, cache = Path(folder[0]) / "corpus.tsv", Path(folder[0]) / "vocab.json"
    if rank == 0:
        write_corpus(corpus)
    dist.barrier()

    vocab = get_vocab(corpus, cache)
    log.info("%d entries", len(vocab))
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.EmbeddingBag(len(vocab), 16), nn.Linear(16, 2)))
    train(model, *tensors(vocab, seed=rank))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
