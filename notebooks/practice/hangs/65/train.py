"""FSDP2: a small transformer block, sharded over all ranks, exported for serving now and then."""

import json
import logging
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from exporting import Exporter
from model import Block, Stack
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import mse_loss

log = logging.getLogger("fsdp")


def sharded(config: dict, world: int) -> Stack:
    mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("shard",))
    model = Stack(config["layers"], config["width"], config["heads"])
    for module in model.modules():
        if isinstance(module, Block):
            fully_shard(module, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def steps(model: Stack, exporter: Exporter, config: dict, rank: int) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    chance = torch.Generator().manual_seed(config["seed"] + rank)
    for step in range(1, config["steps"] + 1):
        x = torch.randn(config["batch"], config["length"], config["width"], generator=chance)
        loss = mse_loss(model(x), x.cumsum(dim=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if exporter.is_due(step):
            exporter.export(model, step)
        if step % config["log_every"] == 0:
            mean = loss.detach() / dist.get_world_size()
            dist.all_reduce(mean)
            log.info("step %d of %d: loss %.3f", step, config["steps"], mean.item())


def main() -> None:
    config = json.loads(Path("fsdp.json").read_text())
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"rank={rank} logger=%(name)s %(message)s")
    torch.manual_seed(config["seed"])
    if config["width"] % (8 * config["heads"]):
        warnings.warn("heads of this width are slow on tensor cores", stacklevel=1)
    model = sharded(config, world)
    counted = sum(parameter.numel() for parameter in model.parameters())
    log.info("%d parameters in %d layers", counted, config["layers"])
    exporter = Exporter(Path(config["export"]["folder"]), config["export"], writes=rank == 0)
    steps(model, exporter, config, rank)
    if rank == 0:
        log.info("exports: %s", ", ".join(exporter.written) or "none")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
