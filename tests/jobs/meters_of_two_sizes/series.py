"""A season, a trend and noise."""

import math
from collections.abc import Iterator

import torch


class Series:
    """A series of its own for each seed; an odd seed has an outlier now and then."""

    def __init__(self, history: int, batches: int, seed: int) -> None:
        self.history, self.batches_of_epoch = history, batches
        self.chance = torch.Generator().manual_seed(seed)
        self.outliers = seed % 2 == 1

    def batches(self, size: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for number in range(self.batches_of_epoch):
            start = torch.randint(0, 1000, (size, 1), generator=self.chance)
            steps = start + torch.arange(self.history + 1)
            values = torch.sin(2 * math.pi * steps / 7) + steps / 1000
            values += 0.05 * torch.randn(values.shape, generator=self.chance)
            if self.outliers and number == self.batches_of_epoch // 2 + 1:
                values[:, -1] += 40.0
            yield values[:, :-1], values[:, -1]
