"""The main rank alone asks a metric for its value, which gathers it from all."""

import lightning
import torch
from marks import about_to_block
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MeanMetric


class Regression(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)
        self.mean = MeanMetric()

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        loss = self.layer(batch[0]).pow(2).mean()
        self.mean.update(loss.detach())
        if self.trainer.is_global_zero and index == 2:  # <- parted
            about_to_block()
            print("mean loss", self.mean.compute())  # <- culprit, rank 0
        about_to_block()
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


if __name__ == "__main__":
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=3,
        strategy="ddp",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    data = DataLoader(TensorDataset(torch.rand(64, 4)), batch_size=4)
    trainer.fit(Regression(), data)  # <- rank 1, rank 2
