"""Trains a small model with Fabric on two processes; a worker process loads the data."""

import argparse
import json
import os
from pathlib import Path

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--devices", type=int, default=2, help="number of processes")
parser.add_argument("--accelerator", choices=["cpu", "gpu"], default="cpu")
parser.add_argument(
    "--start-method",
    choices=["spawn", "forkserver", "fork"],
    default="spawn",
)
options = parser.parse_args()
fabric = lightning.Fabric(accelerator=options.accelerator, devices=options.devices, strategy="ddp")
fabric.launch()


def make_data() -> TensorDataset:
    inputs = torch.randn(160, 10, generator=torch.Generator().manual_seed(1))
    return TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))


def train(fabric: lightning.Fabric, start_method: str) -> dict[str, float]:
    """Trains for one epoch and returns what this rank ends with."""
    fabric.seed_everything(7)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
    model, optimizer = fabric.setup(model, torch.optim.Adam(model.parameters(), lr=0.01))
    loader = DataLoader(
        make_data(),
        batch_size=10,
        shuffle=True,
        num_workers=1,
        multiprocessing_context=start_method,
    )
    loader = fabric.setup_dataloaders(loader)
    steps = 0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        fabric.backward(loss)
        optimizer.step()
        mean_loss = fabric.all_reduce(loss.detach()).item()
        steps += 1
    fabric.print(f"loss {mean_loss:.3f} after {steps} steps")
    return {
        "rank": fabric.global_rank,
        "world_size": fabric.world_size,
        "steps": steps,
        "loss": mean_loss,
        "parameters": torch.cat([p.detach().flatten() for p in model.parameters()]).sum().item(),
    }


def write_result(result: dict[str, float]) -> None:
    """Writes the result of this rank into the folder RESULTS_DIR, if there is one."""
    if "RESULTS_DIR" in os.environ:
        path = Path(os.environ["RESULTS_DIR"]) / f"result-rank{result['rank']}.json"
        path.write_text(json.dumps(result))
    print(f"rank {result['rank']} of {result['world_size']} is done", flush=True)


if __name__ == "__main__":
    write_result(train(fabric, options.start_method))
    torch.distributed.destroy_process_group()
