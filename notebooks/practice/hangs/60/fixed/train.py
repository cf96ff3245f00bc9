"""Trains on shards that rank 0 deals out anew for every epoch; can be continued."""

import json
import logging
from pathlib import Path

import torch
import torch.distributed as dist
from dealing import Dealer
from progress import Progress
from torch import nn
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("shards")


def shard_data(shard: int, config: dict) -> tuple[torch.Tensor, torch.Tensor]:
    chance = torch.Generator().manual_seed(1000 + shard)
    x = torch.randn(config["rows"], config["features"], generator=chance)
    return x, (x[:, :1] - x[:, 1:2]).sign()


def train_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, shards: list[int], config: dict):
    total = 0.0
    for shard in shards:
        x, y = shard_data(shard, config)
        for rows in torch.arange(len(x)).split(config["batch"]):
            loss = nn.functional.soft_margin_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
    return total / len(shards)


def main() -> None:
    config = json.loads(Path("shards.json").read_text())
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(name)s[{rank}] %(levelname)s: %(message)s")
    torch.manual_seed(config["seed"])
    if config["shards"] % world:
        log.warning("%d shards do not divide among %d ranks evenly", config["shards"], world)
    progress = Progress.load(Path(config["state"]), rank)
    reached = torch.tensor(progress.epoch)
    dist.broadcast(reached, src=0)
    progress.epoch = int(reached)
    dealer = Dealer(dist.distributed_c10d._get_default_store(), rank, world, config)
    model = DistributedDataParallel(nn.Linear(config["features"], 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    while progress.epoch < config["epochs"]:
        if rank == 0:
            dealer.deal(progress.epoch)
        shards = dealer.shards_of(progress.epoch)
        log.info("epoch %d: shards %s", progress.epoch, shards)
        loss = train_epoch(model, optimizer, shards, config)
        log.info("epoch %d: loss %.3f", progress.epoch, loss)
        progress.advance(loss)
    dist.barrier()
    if rank == 0:
        log.info("trained %d epochs", config["epochs"])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
