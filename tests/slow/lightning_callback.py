"""A Lightning callback draws sample outputs on rank zero after every batch."""

import ledger
import lightning
import torch
from lightning.pytorch.utilities import rank_zero_only
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))

    def on_fit_start(self):
        ledger.joined()
        self.backward_pass = ledger.Backward(self.layer)

    def on_after_backward(self):
        self.backward_pass.done()

    def training_step(self, batch, index):
        return self.layer(batch[0]).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Samples(lightning.Callback):
    """Keeps a text picture of the model's outputs."""

    @rank_zero_only
    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        with torch.no_grad():
            grid = module.layer(torch.rand(2000, 64)).flatten().tolist()
        self.picture = draw(grid)


def draw(grid):
    rows = []
    for height in range(300):
        rows.append("".join("#" if value * 300 > height else " " for value in grid))  # <- slow
    return "\n".join(rows)


if __name__ == "__main__":
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[Samples()],
    )
    trainer.fit(Regression(), DataLoader(TensorDataset(torch.randn(3200, 64)), batch_size=16))
