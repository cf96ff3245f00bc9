"""The model and the data of this lab, and the result that each rank writes."""

import json
import os
from pathlib import Path

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_model(width: int = 16) -> nn.Module:
    return nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 1))


def make_loader(seed: int) -> DataLoader[tuple[torch.Tensor, ...]]:
    inputs = torch.randn(80, 10, generator=torch.Generator().manual_seed(seed))
    return DataLoader(TensorDataset(inputs, inputs.sum(dim=1, keepdim=True)), batch_size=10)


class Evaluator:
    """Measures the loss of a model on data that it is not trained on."""

    def __init__(self, fabric: lightning.Fabric, model: nn.Module) -> None:
        self.model = fabric.setup_module(model).eval()
        self.loader = fabric.setup_dataloaders(make_loader(seed=2))

    @torch.no_grad()
    def loss(self) -> float:
        losses = (nn.functional.mse_loss(self.model(x), y).item() for x, y in self.loader)
        return sum(losses) / len(self.loader)


def write_result(
    fabric: lightning.Fabric, loss: torch.Tensor, model: nn.Module, **more: bool | int | str
) -> None:
    result = {
        "rank": fabric.global_rank,
        "world_size": fabric.world_size,
        "loss": fabric.all_reduce(loss).item(),
        "parameters": torch.cat([p.detach().flatten() for p in model.parameters()]).sum().item(),
        **more,
    }
    if "RESULTS_DIR" in os.environ:
        path = Path(os.environ["RESULTS_DIR"]) / f"result-rank{fabric.global_rank}.json"
        path.write_text(json.dumps(result))
    print(f"rank {fabric.global_rank} of {fabric.world_size} done: {result}", flush=True)
