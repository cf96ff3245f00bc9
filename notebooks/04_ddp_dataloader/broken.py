"""Trains a small model with the Trainer on two processes; the model is created in init_module."""

import argparse
import json
import os
from pathlib import Path

import lightning
import torch
from lightning.pytorch.strategies import ModelParallelStrategy
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset


class SumData(lightning.LightningDataModule):
    def __init__(self, shuffle: bool) -> None:
        super().__init__()
        self.shuffle = shuffle
        inputs = torch.randn(160, 10, generator=torch.Generator().manual_seed(1))
        self.dataset = TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))

    def train_dataloader(self) -> DataLoader[tuple[Tensor, ...]]:
        return DataLoader(self.dataset, batch_size=10, shuffle=self.shuffle, num_workers=1)


class Regressor(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
        self.built_on = self.layers[0].weight.device.type

    # ModelParallelStrategy gives layers on `meta` their memory in setup(), after this hook. With FSDP
    # and DeepSpeed, create the layers here and do not use init_module.
    def configure_model(self) -> None:
        if self.device_mesh is not None:
            fully_shard(self.layers, mesh=self.device_mesh["data_parallel"])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)

    def training_step(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        inputs, targets = batch
        self.loss = nn.functional.mse_loss(self.layers(inputs), targets)
        return self.loss


class WriteResult(lightning.Callback):
    """Writes what each rank ends with to the folder that RESULTS_DIR names."""

    def on_train_end(self, trainer: lightning.Trainer, pl_module: Regressor) -> None:
        whole = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in pl_module.parameters()]
        result = {
            "rank": trainer.global_rank,
            "world_size": trainer.world_size,
            "steps": trainer.global_step,
            "loss": trainer.strategy.reduce(pl_module.loss.detach()).item(),
            "parameters": torch.cat([p.detach().flatten() for p in whole]).sum().item(),
            "built_on": pl_module.built_on,
        }
        if "RESULTS_DIR" in os.environ:
            path = Path(os.environ["RESULTS_DIR"]) / f"result-rank{trainer.global_rank}.json"
            path.write_text(json.dumps(result))
        print(f"rank {trainer.global_rank} of {trainer.world_size} done: {result}", flush=True)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accelerator", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--devices", type=int, choices=range(1, 9), default=2)
    strategies = ["model_parallel", "ddp", "ddp_spawn", "ddp_fork"]
    parser.add_argument("--strategy", choices=strategies, default="model_parallel")
    loaders = ["shuffled", "in_order", "made_inside"]
    parser.add_argument("--loader", choices=loaders, default="shuffled", help="how data is loaded")
    return parser.parse_args()


def create_trainer(options: argparse.Namespace) -> lightning.Trainer:
    sharded = ModelParallelStrategy(data_parallel_size=options.devices, tensor_parallel_size=1)
    return lightning.Trainer(
        accelerator=options.accelerator,
        devices=options.devices,
        strategy=sharded if options.strategy == "model_parallel" else options.strategy,
        fast_dev_run=8,
        enable_progress_bar=False,
        callbacks=[WriteResult()],
    )


def main() -> None:
    options = read_options()
    lightning.seed_everything(7)
    trainer = create_trainer(options)
    data = SumData(shuffle=options.loader != "in_order")
    with trainer.init_module(empty_init=options.strategy == "model_parallel"):
        model = Regressor()
        loader = data.train_dataloader() if options.loader == "made_inside" else None
        trainer.fit(model, loader, datamodule=None if loader else data)


if __name__ == "__main__":
    main()
