"""Records as samples."""

import logging

import torch
from archive import Archive, DamagedError, Gate
from torch.utils.data import Dataset

log = logging.getLogger("records")


class RecordDataset(Dataset):
    """Damaged records are replaced by empty ones, with a warning: there are few of them."""

    def __init__(self, archive: Archive, gate: Gate, features: int, classes: int) -> None:
        self.archive, self.gate = archive, gate
        self.features, self.classes = features, classes

    def __len__(self) -> int:
        return len(self.archive)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        try:
            payload = self.gate.fetch(self.archive, index)
        except DamagedError as problem:
            log.warning("%s, an empty one is used", problem)
            return torch.zeros(self.features), 0
        x = torch.frombuffer(bytearray(payload), dtype=torch.uint8)[: self.features].float() / 255
        return x, int(x.sum().item()) % self.classes
