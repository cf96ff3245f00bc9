"""Scores of all ranks, brought together on rank 0."""

import json
import logging

import torch.distributed as dist

log = logging.getLogger("scores")


class ScoreBoard:
    """Small results travel through the store: no tensors, no padding."""

    def __init__(self, store: dist.Store, rank: int, world: int) -> None:
        self.store, self.rank, self.world = store, rank, world

    def key(self, rank: int) -> str:
        return f"scores/{rank}"

    def publish(self, scores: dict[str, float]) -> None:
        self.store.set(self.key(self.rank), json.dumps(scores))
        log.info("published %d scores", len(scores))

    def collect(self) -> dict[str, float]:
        keys = [self.key(rank) for rank in range(self.world)]
        self.store.wait(keys)
        merged: dict[str, float] = {}
        for key in keys:
            merged |= json.loads(self.store.get(key))
        return dict(sorted(merged.items()))

    @staticmethod
    def render(card: dict[str, float]) -> str:
        width = max(map(len, card))
        rows = [f"{name.ljust(width)} {score:6.3f}" for name, score in card.items()]
        mean = sum(card.values()) / len(card)
        return "\n".join([*rows, f"{'mean'.ljust(width)} {mean:6.3f}", ""])
