"""Trains a small model with DDP, started by torchrun; a worker process loads the data."""

import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
RANK, WORLD_SIZE = dist.get_rank(), dist.get_world_size()
torch.manual_seed(7)


def make_data() -> TensorDataset:
    inputs = torch.randn(160, 10, generator=torch.Generator().manual_seed(1))
    return TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))


def train() -> dict[str, float]:
    """Trains for one epoch and returns what this rank ends with."""
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
    model = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    data = make_data()
    loader = DataLoader(
        data,
        batch_size=10,
        sampler=DistributedSampler(data),
        num_workers=1,
        multiprocessing_context="spawn",
    )
    steps = 0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        mean_loss = loss.detach() / WORLD_SIZE
        dist.all_reduce(mean_loss)
        steps += 1
    if RANK == 0:
        print(f"loss {mean_loss.item():.3f} after {steps} steps")
    return {
        "rank": RANK,
        "world_size": WORLD_SIZE,
        "steps": steps,
        "loss": mean_loss.item(),
        "parameters": torch.cat([p.detach().flatten() for p in model.parameters()]).sum().item(),
    }


def write_result(result: dict[str, float]) -> None:
    """Writes the result of this rank into the folder RESULTS_DIR, if there is one."""
    if "RESULTS_DIR" in os.environ:
        path = Path(os.environ["RESULTS_DIR"]) / f"result-rank{result['rank']}.json"
        path.write_text(json.dumps(result))
    print(f"rank {result['rank']} of {result['world_size']} is done", flush=True)


if __name__ == "__main__":
    write_result(train())
    dist.destroy_process_group()
