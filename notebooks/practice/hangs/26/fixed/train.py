import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regression(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        return self.layer(batch[0]).pow(2).mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class LogNorm(lightning.Callback):
    def on_train_batch_end(
        self, trainer: lightning.Trainer, module: lightning.LightningModule, *_: object
    ) -> None:
        if trainer.global_step == 3:
            norm = sum(p.norm() for p in module.parameters())
            module.log("norm", norm, sync_dist=True, on_step=True)


if __name__ == "__main__":
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        callbacks=[LogNorm()],
    )
    data = DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=4)
    trainer.fit(Regression(), data)
