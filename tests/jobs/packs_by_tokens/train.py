"""Translation-like training with batches of a fixed number of tokens."""

import logging
import tomllib
from pathlib import Path

import torch
import torch.distributed as dist
from corpus import Corpus
from packing import TokenBatches
from torch import nn
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("packed")


class Encoder(nn.Module):
    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=0)
        self.body = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
        self.out = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.out(self.body(self.embed(tokens)))


def pad(sentences: list[list[int]]) -> torch.Tensor:
    rows = [torch.tensor(sentence) for sentence in sentences]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def main() -> None:
    config = tomllib.loads(Path("packed.toml").read_text())
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(relativeCreated)06d ms r{rank} %(message)s")
    torch.manual_seed(config["seed"])
    corpus = Corpus(config["corpus"])
    batches = TokenBatches(corpus, config["packing"]["tokens"], rank, world)
    if batches.longest > config["packing"]["tokens"] // 4:
        log.warning("a sentence of %d tokens leaves little room for others", batches.longest)
    model = DistributedDataParallel(Encoder(config["corpus"]["vocabulary"], config["width"]))
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    seen = torch.zeros(1)
    of_ranks = [torch.zeros(1) for _ in range(world)]
    for epoch in range(config["epochs"]):
        batches.shuffle(epoch)
        for number, sentences in enumerate(batches):  # <- parted
            tokens = pad(sentences)
            logits = model(tokens[:, :-1]).flatten(0, 1)
            loss = nn.functional.cross_entropy(logits, tokens[:, 1:].flatten(), ignore_index=0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += (tokens != 0).sum()
            if number % 8 == 0:
                log.info("epoch %d batch %d: %d sentences, loss %.3f", epoch, number, *of(tokens, loss))
        dist.all_gather(of_ranks, seen)  # <- culprit, rank 0
        if rank == 0:
            log.info("epoch %d: %d tokens so far", epoch, sum(of_ranks).item())
    dist.destroy_process_group()


def of(tokens: torch.Tensor, loss: torch.Tensor) -> tuple[int, float]:
    return len(tokens), loss.item()


if __name__ == "__main__":
    main()
