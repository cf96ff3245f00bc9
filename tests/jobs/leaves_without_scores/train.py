"""Fine-tunes a small tagger, scores it section by section and writes a score card."""

import logging
import tomllib
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from scores import ScoreBoard
from sections import Section, load_sections
from torch import nn
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("tagger")


class Tagger(nn.Module):
    def __init__(self, features: int, hidden: int, tags: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, hidden), nn.Tanh())
        self.head = nn.Linear(hidden, tags)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


def fit(model: nn.Module, config: dict, rank: int) -> None:
    generator = torch.Generator().manual_seed(config["seed"] + rank)
    teacher = torch.arange(config["features"]).remainder(config["tags"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, config["decay_every"], gamma=0.5)
    for step in range(config["steps"]):
        x = torch.rand(config["batch"], config["features"], generator=generator)
        y = teacher[x.argmax(dim=1)]
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % config["log_every"] == 0:
            log.info("step %d loss %.3f lr %.4f", step, loss.item(), schedule.get_last_lr()[0])


@torch.no_grad()
def accuracy(model: nn.Module, section: Section, tags: int) -> float:
    x, y = section.tensors(tags)
    return (model(x).argmax(dim=1) == y).float().mean().item()


def validate(model: nn.Module, sections: list[Section], tags: int) -> dict[str, float]:
    model.eval()
    scores = {}
    for section in sections:
        scores[section.name] = accuracy(model, section, tags)
        log.info("section %s: %.3f", section.name, scores[section.name])
    return scores


def main() -> None:
    config = tomllib.loads(Path("run.toml").read_text())
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(level=logging.INFO, format=f"%(levelname)s rank {rank} %(name)s: %(message)s")
    torch.manual_seed(config["train"]["seed"])
    if config["train"].get("amp"):
        warnings.warn("amp is set, but there is no accelerator; training in float32", stacklevel=1)
    train = config["train"]
    model = DistributedDataParallel(Tagger(train["features"], train["hidden"], train["tags"]))
    fit(model, train, rank)

    board = ScoreBoard(dist.distributed_c10d._get_default_store(), rank, world)
    sections = load_sections(config["validation"], train["features"])[rank::world]
    if not sections:
        log.info("no section falls to this rank, nothing to validate")
        return
    board.publish(validate(model.module, sections, train["tags"]))
    if rank == 0:
        card = board.collect()
        Path(config["validation"]["card"]).write_text(board.render(card))
        log.info("wrote %s with %d sections", config["validation"]["card"], len(card))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
