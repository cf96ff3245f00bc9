"""Meters of a training run."""

import torch
import torch.distributed as dist

QUANTILES = torch.tensor([0.1, 0.5, 0.9])


class Meter:
    """Keeps every n-th loss, and every remarkable one."""

    def __init__(self, every: int, above: float) -> None:
        self.every, self.above = every, above
        self.kept: list[float] = []
        self.count = 0
        self.weight = 0

    def note(self, loss: float, weight: int) -> None:
        if self.count % self.every == 0 or loss > self.above:
            self.kept.append(loss)
        self.count += 1
        self.weight += weight

    def quantiles(self) -> list[float]:
        """Three quantiles of the mean loss over ranks, place by place."""
        losses = torch.tensor(self.kept)
        dist.all_reduce(losses)
        return torch.quantile(losses / dist.get_world_size(), QUANTILES).tolist()
