"""Trains a classifier on records that are read from a slow archive."""

import logging
from pathlib import Path

import torch
import torch.distributed as dist
import yaml
from archive import Archive, Gate
from records import RecordDataset
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

log = logging.getLogger("train")


def build_loader(config: dict, rank: int, world: int) -> DataLoader:
    archive = Archive(config["archive"]["records"], config["archive"]["bytes"])
    gate = Gate(config["archive"]["readers"])
    dataset = RecordDataset(archive, gate, config["model"]["features"], config["model"]["classes"])
    sampler = DistributedSampler(dataset, world, rank, shuffle=False)
    return DataLoader(
        dataset,
        batch_size=config["loader"]["batch"],
        sampler=sampler,
        num_workers=config["loader"]["workers"],
        prefetch_factor=config["loader"]["prefetch"],
        persistent_workers=True,
    )


def train_epoch(
    model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, epoch: int
) -> float:
    total, steps = 0.0, 0
    for x, y in loader:  # <- rank 1
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()  # <- rank 0
        optimizer.step()
        total, steps = total + loss.item(), steps + 1
        log.info("epoch %d step %d loss %.3f", epoch, steps, loss.item())
    return total / steps


def main() -> None:
    config = yaml.safe_load(Path("experiment.yaml").read_text())
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(
        level=logging.INFO, format=f"%(asctime)s [{rank}] %(levelname)s %(name)s %(message)s"
    )
    torch.manual_seed(config["seed"])
    model = DistributedDataParallel(
        nn.Sequential(
            nn.Linear(config["model"]["features"], config["model"]["hidden"]),
            nn.ReLU(),
            nn.Linear(config["model"]["hidden"], config["model"]["classes"]),
        )
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)
    loader = build_loader(config, rank, world)
    if not config.get("pin_memory"):
        log.warning("pin_memory is off, copies to an accelerator would be slower")
    for epoch in range(config["epochs"]):
        loader.sampler.set_epoch(epoch)
        mean = torch.tensor(train_epoch(model, loader, optimizer, epoch))
        dist.all_reduce(mean)
        if rank == 0:
            log.info("epoch %d done, mean loss %.3f", epoch, mean.item() / world)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
