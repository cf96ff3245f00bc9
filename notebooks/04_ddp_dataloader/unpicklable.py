"""Trains the model of fixed.py on scaled data, which spawned workers load."""

from collections.abc import Callable

import lightning
from fixed import Regressor, SumData, WriteResult
from torch import Tensor
from torch.utils.data import DataLoader, Dataset


class Scaled(Dataset[tuple[Tensor, ...]]):
    """A dataset whose items go through a function."""

    def __init__(self, dataset: Dataset[tuple[Tensor, ...]], scale: Callable[[Tensor], Tensor]) -> None:
        self.dataset, self.scale = dataset, scale

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        return tuple(self.scale(part) for part in self.dataset[index])


class ScaledData(SumData):
    def train_dataloader(self) -> DataLoader[tuple[Tensor, ...]]:
        scaled = Scaled(self.dataset, lambda part: part / 10)
        return DataLoader(scaled, batch_size=10, num_workers=1, multiprocessing_context="spawn")


class PrintRange(lightning.Callback):
    """Prints on each rank whether the first batch has been scaled."""

    def on_train_batch_start(
        self, trainer: lightning.Trainer, _: Regressor, batch: tuple[Tensor, Tensor], batch_idx: int
    ) -> None:
        if batch_idx == 0:
            inside = bool(batch[0].abs().max() < 1)
            print(f"rank {trainer.global_rank}: inputs between -1 and 1: {inside}", flush=True)


def main() -> None:
    lightning.seed_everything(7)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        fast_dev_run=8,
        enable_progress_bar=False,
        callbacks=[WriteResult(), PrintRange()],
    )
    with trainer.init_module():
        model = Regressor()
    trainer.fit(model, datamodule=ScaledData(shuffle=True))


if __name__ == "__main__":
    main()
