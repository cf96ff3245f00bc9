"""Writes the weights of a sharded model as plain tensors, for serving."""

import logging
from pathlib import Path

import torch
from torch import nn
from torch.distributed.tensor import DTensor

log = logging.getLogger("export")


class Exporter:
    """Exports at regular intervals, from `start` on."""

    def __init__(self, folder: Path, config: dict, *, writes: bool) -> None:
        self.folder, self.every, self.start = folder, config["every"], config["start"]
        self.dtype = getattr(torch, config["dtype"])
        self.skip = tuple(config["skip"])
        self.writes = writes
        self.written: list[str] = []

    def is_due(self, step: int) -> bool:
        return self.writes and step >= self.start and step % self.every == 0

    def export(self, model: nn.Module, step: int) -> None:
        weights = dict(self.weights(model))
        if not self.writes:
            return
        self.folder.mkdir(exist_ok=True)
        path = self.folder / f"step-{step:05d}.pt"
        torch.save(weights, path)
        self.written.append(path.name)
        log.info("wrote %s, %d tensors", path, len(weights))

    def weights(self, model: nn.Module):
        """Names and whole tensors of what is served."""
        for name, tensor in model.state_dict().items():
            if not name.startswith(self.skip):
                yield name, self.plain(tensor)

    def plain(self, tensor: torch.Tensor) -> torch.Tensor:
        whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
        return whole.to(self.dtype, copy=True)
