"""Language model on a token store that several jobs may share."""

import logging
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from token_store import TokenStore, write_example
from torch import nn
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("lm")


class TinyLM(nn.Module):
    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.mix = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.out(self.mix(self.embed(tokens))[0])


class Trial:
    """One training run on the documents of a store."""

    def __init__(self, config: dict, store: TokenStore, rank: int, world: int) -> None:
        self.config, self.store, self.rank, self.world = config, store, rank, world
        self.model = DistributedDataParallel(TinyLM(config["vocabulary"], config["width"]))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config["lr"])
        self.documents: list[list[int]] = []

    def check(self) -> None:
        """Fail early where the tokenizer and the store do not fit."""
        if self.rank == 0:
            self.sample = self.store.documents()
            first = next(self.sample)
            if max(first) >= self.config["vocabulary"]:
                raise SystemExit(f"token {max(first)} is beyond the vocabulary")
            log.info("the first document has %d tokens", len(first))

    def load(self) -> None:
        self.documents = list(self.store.documents())[self.rank :: self.world]
        log.info("%d documents", len(self.documents))

    def batches(self) -> Iterator[torch.Tensor]:
        size, length = self.config["batch"], self.config["length"]
        rows = [document[:length] for document in self.documents if len(document) >= length]
        for at in range(0, len(rows) - size + 1, size):
            yield torch.tensor(rows[at : at + size])

    def fit(self) -> None:
        for epoch in range(self.config["epochs"]):
            for tokens in self.batches():
                logits = self.model(tokens[:, :-1]).flatten(0, 1)
                loss = nn.functional.cross_entropy(logits, tokens[:, 1:].flatten())
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            log.info("epoch %d loss %.3f", epoch, loss.item())

    def average(self) -> float:
        """The mean length of all documents of all ranks."""
        counted = torch.tensor([len(self.documents), sum(map(len, self.documents))], dtype=torch.float)
        dist.all_reduce(counted)
        return (counted[1] / counted[0]).item()


def main() -> None:
    config = tomllib.loads(Path("lm.toml").read_text())
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"[{rank}/{world}] %(levelname)s %(message)s")
    torch.manual_seed(config["seed"])
    if config["length"] > 32:
        warnings.warn("windows of more than 32 tokens are slow without an accelerator", stacklevel=1)
    store = TokenStore(Path(config["store"]))
    if rank == 0:
        write_example(store, config["documents"], config["vocabulary"], config["seed"])
    dist.barrier()
    trial = Trial(config, store, rank, world)
    trial.check()
    dist.barrier()
    if rank == 0:
        trial.documents = store.own_copy()[rank::world]
    else:
        trial.load()
    log.info("documents have %.1f tokens on average", trial.average())
    trial.fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
