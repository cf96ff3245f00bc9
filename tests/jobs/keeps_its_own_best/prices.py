"""Prices of two regions."""

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, TensorDataset


class PriceData(pl.LightningDataModule):
    """Made-up prices; those that are validated on drift from row to row."""

    def __init__(self, config: dict, features: int) -> None:
        super().__init__()
        self.rows, self.batch, self.drift = config["rows"], config["batch"], config["drift"]
        self.features = features

    def setup(self, stage: str) -> None:
        chance = torch.Generator().manual_seed(77)
        weights = torch.randn(self.features, generator=chance)
        x = torch.randn(self.rows, self.features, generator=chance)
        self.train = TensorDataset(x, x @ weights)
        x = torch.randn(self.rows // 4, self.features, generator=chance)
        region = torch.arange(len(x)).remainder(2).float()
        self.valid = TensorDataset(x, (1 - region) * (x @ weights) + region * self.drift * x[:, 0])

    def train_dataloader(self) -> DataLoader:
        return DataLoader(self.train, batch_size=self.batch, shuffle=True)

    def val_dataloader(self) -> DataLoader:
        return DataLoader(self.valid, batch_size=self.batch)
