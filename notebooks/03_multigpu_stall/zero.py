"""Trains a small model with DeepSpeed, ZeRO stage 2: gradients and Adam's state are sharded.

    torchrun --standalone --nproc-per-node 2 zero.py

When the first rank starts, DeepSpeed compiles an operator in C++ into TORCH_EXTENSIONS_DIR, or into
the user's cache folder when that is not set.
"""

import json
import os
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist
from torch import nn

CONFIG = {
    "train_micro_batch_size_per_gpu": 16,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2},
    "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}},
}


def make_batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(1000 * rank + step)
    inputs = torch.randn(16, 32, generator=random)
    return inputs.bfloat16(), inputs[:, :4].sum(dim=1, keepdim=True).bfloat16()


def train(steps: int) -> dict[str, float]:
    deepspeed.init_distributed("gloo")
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
    engine, *_ = deepspeed.initialize(model=model, config=CONFIG)
    for step in range(steps):
        inputs, targets = make_batch(dist.get_rank(), step)
        loss = nn.functional.mse_loss(engine(inputs), targets)
        engine.backward(loss)
        engine.step()
    mean_loss = loss.detach().float()
    dist.all_reduce(mean_loss)
    return {
        "rank": dist.get_rank(),
        "world_size": dist.get_world_size(),
        "steps": steps,
        "loss": mean_loss.item() / dist.get_world_size(),
        "parameters": sum(p.detach().double().sum().item() for p in engine.module.parameters()),
    }


def write_result(result: dict[str, float]) -> None:
    """Writes the result of this rank into the folder RESULTS_DIR, if there is one."""
    if "RESULTS_DIR" in os.environ:
        path = Path(os.environ["RESULTS_DIR"]) / f"result-rank{result['rank']}.json"
        path.write_text(json.dumps(result))
    print(f"rank {result['rank']}: loss {result['loss']:.3f} after {result['steps']} steps", flush=True)


if __name__ == "__main__":
    write_result(train(50))
    dist.destroy_process_group()
