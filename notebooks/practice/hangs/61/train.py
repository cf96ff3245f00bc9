"""Contrastive training on one or several machines: python train.py PORT."""

import logging
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import yaml
from cluster import Cluster, Place
from torch import nn
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("contrastive")


class TwoTowers(nn.Module):
    def __init__(self, left: int, right: int, width: int) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(left, width), nn.Linear(right, width)
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a = nn.functional.normalize(self.left(a), dim=1)
        b = nn.functional.normalize(self.right(b), dim=1)
        return self.scale.exp() * a @ b.T


def pairs(config: dict, chance: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    a = torch.randn(config["batch"], config["left"], generator=chance)
    return a, a[:, : config["right"]] + 0.1 * torch.randn(
        config["batch"], config["right"], generator=chance
    )


def work(local_rank: int, cluster: Cluster, config: dict) -> None:
    place = cluster.place(local_rank)
    logging.basicConfig(level=logging.INFO, format=f"rank {place.rank}: %(name)s: %(message)s")
    if place.threads < 2:
        log.warning("one thread for each rank; input pipelines may be slow")
    torch.set_num_threads(place.threads)
    join(place)
    torch.manual_seed(config["seed"])
    model = DistributedDataParallel(TwoTowers(config["left"], config["right"], config["width"]))
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    chance = torch.Generator().manual_seed(config["seed"] + place.rank)
    for step in range(config["steps"]):
        logits = model(*pairs(config, chance))
        target = torch.arange(len(logits))
        loss = nn.functional.cross_entropy(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            log.info("step %d loss %.3f", step, loss.item())
    if place.rank == 0:
        log.info("finished after %d steps on %d ranks", config["steps"], place.world)
    dist.destroy_process_group()


def join(place: Place) -> None:
    log.info("joining %s as %d of %d", place.address, place.rank, place.world)
    dist.init_process_group("gloo", init_method=place.address, rank=place.rank, world_size=place.world)
    log.info("joined")


def main() -> None:
    config = yaml.safe_load(Path("train.yaml").read_text())
    cluster = Cluster.from_config(yaml.safe_load(Path("cluster.yaml").read_text()), int(sys.argv[1]))
    print(f"starting {cluster.per_machine} ranks on {cluster.machine}", flush=True)
    mp.spawn(work, args=(cluster, config), nprocs=cluster.per_machine)


if __name__ == "__main__":
    main()
