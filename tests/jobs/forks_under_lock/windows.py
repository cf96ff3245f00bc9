"""Windows of a sensor recording, and a cache of those that were cut last."""

import threading
from collections import OrderedDict

import torch
from torch.utils.data import Dataset


class WindowCache:
    """Keeps the windows that were used last. Threads may share it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.lock = threading.Lock()
        self.hits = self.misses = 0
        self._kept: OrderedDict[int, torch.Tensor] = OrderedDict()

    def get(self, index: int) -> torch.Tensor | None:
        with self.lock:  # <- culprit
            window = self._kept.get(index)
            if window is None:
                self.misses += 1
            else:
                self.hits += 1
                self._kept.move_to_end(index)
            return window

    def put(self, index: int, window: torch.Tensor) -> None:
        with self.lock:
            self._kept[index] = window
            while len(self._kept) > self.size:
                self._kept.popitem(last=False)

    def summary(self) -> str:
        with self.lock:
            return f"{len(self._kept)} kept, {self.hits} hits, {self.misses} misses"


class Windows(Dataset):
    """Overlapping windows with the mean of the last sample as the target."""

    def __init__(self, count: int, channels: int, length: int, cache: WindowCache) -> None:
        self.count, self.channels, self.length, self.cache = count, channels, length, cache

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        window = self.cache.get(index)
        if window is None:
            window = self.cut(index)
            self.cache.put(index, window)
        return window, window[:, -1].mean()

    def cut(self, index: int) -> torch.Tensor:
        time = torch.arange(index, index + self.length) / self.length
        phase = torch.arange(self.channels).unsqueeze(1)
        return torch.sin(time + phase) + 0.1 * phase
