"""Trains the model of fixed.py on balanced data: items of the rarer class are drawn more often."""

import argparse

import lightning
import torch
from fixed import Regressor, SumData, WriteResult
from torch import Tensor
from torch.utils.data import DataLoader, WeightedRandomSampler


class BalancedData(SumData):
    def __init__(self, workers: int) -> None:
        super().__init__(shuffle=False)
        self.workers = workers

    def train_dataloader(self) -> DataLoader[tuple[Tensor, ...]]:
        labels = (self.dataset.tensors[1].flatten() > 2).long()
        counts = torch.bincount(labels)
        weights = (1 // counts)[labels]
        sampler = WeightedRandomSampler(weights, num_samples=len(labels))
        return DataLoader(self.dataset, batch_size=10, sampler=sampler, num_workers=self.workers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, choices=[0, 1], default=1)
    options = parser.parse_args()
    lightning.seed_everything(7)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        fast_dev_run=8,
        enable_progress_bar=False,
        callbacks=[WriteResult()],
    )
    with trainer.init_module():
        model = Regressor()
    trainer.fit(model, datamodule=BalancedData(options.workers))


if __name__ == "__main__":
    main()
