"""Trains with augmentation tables that are compiled once for each machine."""

import json
import logging
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from kernels import KernelCache, KernelError
from torch import nn
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("train")


def load_tables(cache: KernelCache, names: list[str], size: int) -> dict[str, torch.Tensor]:
    """The table of every kernel; one that cannot be compiled is left out."""
    tables = {}
    for name in names:
        try:
            tables[name] = cache.load(name, size)
        except KernelError as problem:
            log.warning("%s, going on without it", problem)
    return tables


def augment(x: torch.Tensor, tables: dict[str, torch.Tensor], step: int) -> torch.Tensor:
    names = sorted(tables)
    table = tables[names[step % len(names)]]
    return x @ table / table.norm()


def train(model: nn.Module, tables: dict[str, torch.Tensor], config: dict, rank: int) -> None:
    generator = torch.Generator().manual_seed(config["seed"] + rank)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=config["lr"])
    running = 0.0
    for step in range(config["steps"]):
        x = torch.randn(config["batch"], config["size"], generator=generator)
        loss = (model(augment(x, tables, step)) - x.mean(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), config["clip"])
        optimizer.step()
        running = 0.9 * running + 0.1 * loss.item()
        if step % 10 == 0:
            log.info("step %03d running loss %.4f", step, running)


def main() -> None:
    config = json.loads(Path("settings.json").read_text())
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s rank{rank} %(name)s: %(message)s")
    if config["clip"] < 1:
        warnings.warn("gradients are clipped below a norm of 1", stacklevel=1)
    cache = KernelCache(Path(config["cache"]), config["version"])
    if rank == 0:
        cache.prepare()
        tables = load_tables(cache, config["kernels"], config["size"])
        dist.barrier()
    else:
        dist.barrier()
        tables = load_tables(cache, config["kernels"], config["size"])
    kept = [None] * dist.get_world_size()
    dist.all_gather_object(kept, sorted(tables))  # <- rank 0, culprit
    if rank == 0:
        log.info("kernels: %s", ", ".join(kept[0]))
    torch.manual_seed(config["seed"])
    model = DistributedDataParallel(nn.Linear(config["size"], 1))
    train(model, tables, config, rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
