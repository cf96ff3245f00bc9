"""Mean and deviation of channels."""

import logging
from dataclasses import dataclass

import torch
from torch.utils.data import DataLoader
from windows import Windows

log = logging.getLogger("statistics")


@dataclass(frozen=True)
class Moments:
    mean: torch.Tensor
    deviation: torch.Tensor

    @classmethod
    def of_tensor(cls, packed: torch.Tensor) -> "Moments":
        return cls(packed[0], packed[1])

    def as_tensor(self) -> torch.Tensor:
        return torch.stack([self.mean, self.deviation])

    def apply(self, windows: torch.Tensor) -> torch.Tensor:
        return (windows - self.mean[:, None]) / self.deviation[:, None]


def measure(windows: Windows, batch: int, workers: int) -> Moments:
    """Look at every window once; the cache is left as it is meanwhile."""
    total = torch.zeros(windows.channels)
    squares = torch.zeros(windows.channels)
    count = 0
    loader = DataLoader(windows, batch_size=batch, num_workers=workers)
    with windows.cache.lock:
        for number, (window, _) in enumerate(loader):  # <- rank 0
            total += window.sum(dim=(0, 2))
            squares += window.square().sum(dim=(0, 2))
            count += window.shape[0] * window.shape[2]
            if number % 8 == 0:
                log.info("%d of %d batches", number + 1, len(loader))
    mean = total / count
    return Moments(mean, (squares / count - mean.square()).clamp_min(1e-6).sqrt())
