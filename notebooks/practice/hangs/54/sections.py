"""Sections of the validation set."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Section:
    name: str
    rows: int
    seed: int
    features: int

    def tensors(self, tags: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(self.seed)
        x = torch.rand(self.rows, self.features, generator=generator)
        return x, x.argmax(dim=1).remainder(tags)


def load_sections(config: dict, features: int) -> list[Section]:
    """The sections that are large enough to give a score."""
    known = [
        Section(name, rows, seed, features)
        for seed, (name, rows) in enumerate(sorted(config["sections"].items()))
    ]
    return [section for section in known if section.rows >= config["min_rows"]]
