"""A small model that trains on gloo with DDP, FSDP2 or DeepSpeed, and what its first steps take.

As a program, `training.py KIND FOLDER STEPS`, each rank writes one JSON object to the folder: `first`,
the time at the end of its first step, `step`, seconds of one of the steps after it, and `rss` and `pss`
in bytes.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

WARM_UP = 20
ZERO = {
    "train_batch_size": 128,
    "zero_optimization": {"stage": 1},
    "optimizer": {"type": "SGD", "params": {"lr": 0.01}},
    "zero_allow_untested_optimizer": True,
}


def step_of(kind: str) -> Callable[[], None]:
    """Join the other ranks and return what makes one step: `ddp`, `fsdp2` or `deepspeed`."""
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    inputs, targets = torch.randn(64, 256), torch.randint(10, (64,))

    def loss(of: nn.Module) -> torch.Tensor:
        return nn.functional.cross_entropy(of(inputs), targets)

    if kind == "deepspeed":
        import deepspeed

        deepspeed.init_distributed("gloo")
        engine, *_ = deepspeed.initialize(model=model, config=ZERO)

        def step_of_engine() -> None:
            engine.backward(loss(engine))
            engine.step()

        return step_of_engine
    dist.init_process_group("gloo")
    wrapped = DistributedDataParallel(model) if kind == "ddp" else fully_shard(model)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        loss(wrapped).backward()
        optimizer.step()

    return step


def main(kind: str, folder: str, steps: str) -> None:
    """Train, and write what it took."""
    step = step_of(kind)
    step()
    first = time.time()
    for _ in range(WARM_UP):
        step()
    began = time.perf_counter()
    for _ in range(int(steps)):
        step()
    took = (time.perf_counter() - began) / max(1, int(steps))
    memory = psutil.Process().memory_full_info()
    found = {"first": first, "step": took, "rss": memory.rss, "pss": memory.pss}
    Path(folder, f"{os.environ['RANK']}.json").write_text(json.dumps(found))
    # A group that goes with a DDP model may hang: https://github.com/pytorch/pytorch/issues/56297
    del step
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
