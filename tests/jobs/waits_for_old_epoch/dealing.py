"""Deals shards to ranks: rank 0 decides, the others are told through the store."""

import json
import logging
import random

import torch.distributed as dist

log = logging.getLogger("dealing")


class Dealer:
    """A plan for each epoch, under a key of its own."""

    def __init__(self, store: dist.Store, rank: int, world: int, config: dict) -> None:
        self.store, self.rank, self.world = store, rank, world
        self.shards, self.seed = config["shards"], config["seed"]

    def key(self, epoch: int) -> str:
        return f"plan/{epoch}"

    def deal(self, epoch: int) -> None:
        """Shuffle the shards; every rank gets the same number."""
        order = list(range(self.shards))
        random.Random(self.seed * 1000 + epoch).shuffle(order)
        each = self.shards // self.world
        plan = [order[rank * each : (rank + 1) * each] for rank in range(self.world)]
        self.store.set(self.key(epoch), json.dumps(plan))
        log.info("dealt %d shards for epoch %d", each * self.world, epoch)

    def shards_of(self, epoch: int) -> list[int]:
        self.store.wait([self.key(epoch)])  # <- rank 1, culprit
        return json.loads(self.store.get(self.key(epoch)))[self.rank]
