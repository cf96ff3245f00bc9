import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regression(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        loss = self.layer(batch[0]).pow(2).mean()
        self.log_dict({"loss": loss, "largest": batch[0].max()}, sync_dist=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


if __name__ == "__main__":
    inputs = torch.rand(64, 4)
    inputs[50] = 20.0
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=4,
        strategy="ddp",
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    data = DataLoader(TensorDataset(inputs), batch_size=4)
    trainer.fit(Regression(), data)
