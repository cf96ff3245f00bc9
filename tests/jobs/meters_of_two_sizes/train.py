"""Trains a forecaster and reports the quantiles of its losses over all ranks."""

import logging
import tomllib
from pathlib import Path

import torch
import torch.distributed as dist
from meters import Meter
from series import Series
from torch import nn
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("forecast")


def build(config: dict) -> nn.Module:
    return nn.Sequential(
        nn.Linear(config["history"], config["hidden"]), nn.Tanh(), nn.Linear(config["hidden"], 1)
    )


def train_epoch(
    model: nn.Module, optimizer: torch.optim.Optimizer, series: Series, meter: Meter, config: dict
) -> None:
    for number, (x, y) in enumerate(series.batches(config["batch"])):
        loss = nn.functional.huber_loss(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.note(loss.item(), weight=len(y))
        if number % config["log_every"] == 0:
            log.info("batch %d of %d, loss %.4f", number, config["batches"], loss.item())


def main() -> None:
    config = tomllib.loads(Path("forecast.toml").read_text())
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"{{rank {rank}}} %(levelname)s %(message)s")
    torch.manual_seed(config["seed"])
    if config["history"] < 16:
        log.warning("a history of %d steps is short for a weekly season", config["history"])
    model = DistributedDataParallel(build(config))
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    series = Series(config["history"], config["batches"], seed=config["seed"] + rank)
    for epoch in range(config["epochs"]):
        meter = Meter(every=config["meter"]["every"], above=config["meter"]["above"])
        train_epoch(model, optimizer, series, meter, config)
        low, middle, high = meter.quantiles()
        if rank == 0:
            log.info("epoch %d: losses %.4f %.4f %.4f", epoch, low, middle, high)
        dist.barrier()  # <- rank 0
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
