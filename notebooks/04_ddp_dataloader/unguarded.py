"""Trains the model of fixed.py in one process; a spawned worker loads the data."""

import lightning
from fixed import Regressor, SumData, WriteResult
from torch import Tensor
from torch.utils.data import DataLoader


class SpawnedData(SumData):
    """The data of fixed.py, loaded by a worker that starts as it does on Windows and macOS."""

    def train_dataloader(self) -> DataLoader[tuple[Tensor, ...]]:
        return DataLoader(
            self.dataset,
            batch_size=10,
            shuffle=self.shuffle,
            num_workers=1,
            multiprocessing_context="spawn",
        )


lightning.seed_everything(7)
trainer = lightning.Trainer(
    accelerator="cpu",
    devices=1,
    fast_dev_run=8,
    enable_progress_bar=False,
    callbacks=[WriteResult()],
)
with trainer.init_module():
    model = Regressor()
trainer.fit(model, datamodule=SpawnedData(shuffle=True))
