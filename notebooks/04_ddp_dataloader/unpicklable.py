"""Trains the network of fixed.py on data that is scaled as it is read, in spawned workers."""

from collections.abc import Callable

import lightning
from fixed import Data, Network, WriteResult
from torch import Tensor
from torch.utils.data import DataLoader, Dataset


class Scaled(Dataset[tuple[Tensor, ...]]):
    """A data set whose items go through a function."""

    def __init__(self, items: Dataset[tuple[Tensor, ...]], change: Callable[[Tensor], Tensor]) -> None:
        self.items, self.change = items, change

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(self.change(part) for part in self.items[index])


class ScaledData(Data):
    def train_dataloader(self) -> DataLoader[tuple[Tensor, ...]]:
        scaled = Scaled(self.numbers, lambda part: part / 10)
        return DataLoader(scaled, batch_size=10, num_workers=1, multiprocessing_context="spawn")


def main() -> None:
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
        model = Network()
    trainer.fit(model, datamodule=ScaledData(shuffle=True))


if __name__ == "__main__":
    main()
