"""Regression on sensor windows: normalise, train, report."""

import json
import logging
import time
from pathlib import Path

import torch
import torch.distributed as dist
from statistics_of import Moments, measure
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from windows import WindowCache, Windows

log = logging.getLogger("sensors")


def normalisation(windows: Windows, config: dict, rank: int) -> Moments:
    """Mean and deviation of every channel, measured on one rank and sent to the others."""
    packed = torch.zeros(2, config["channels"])
    if rank == 0:
        begun = time.monotonic()
        packed = measure(windows, config["batch"], config["workers"]).as_tensor()
        log.info("measured %d windows in %.1f s", len(windows), time.monotonic() - begun)
    dist.broadcast(packed, src=0)
    return Moments.of_tensor(packed)


def main() -> None:
    config = json.loads(Path("config.json").read_text())
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"rank {rank} | %(name)s | %(message)s")
    torch.manual_seed(config["seed"])
    if world != config["expected_world_size"]:
        log.warning("tuned for %d ranks, runs on %d", config["expected_world_size"], world)

    cache = WindowCache(config["cached_windows"])
    windows = Windows(config["windows"], config["channels"], config["length"], cache)
    moments = normalisation(windows, config, rank)

    sampler = DistributedSampler(windows, world, rank, seed=config["seed"])
    loader = DataLoader(
        windows, batch_size=config["batch"], sampler=sampler, num_workers=config["workers"]
    )
    model = DistributedDataParallel(nn.Linear(config["channels"], 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    for epoch in range(config["epochs"]):
        sampler.set_epoch(epoch)
        total = torch.zeros(1)
        for window, target in loader:
            x = moments.apply(window).mean(dim=2)
            loss = nn.functional.mse_loss(model(x).squeeze(1), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            log.info("epoch %d loss %.4f", epoch, total.item() / world / len(loader))
    log.info("cache: %s", cache.summary())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
