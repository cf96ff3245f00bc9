"""Autoencoder whose curves and samples are written in the background."""

import logging
import tomllib
from pathlib import Path

import torch
import torch.distributed as dist
from journal import Journal
from torch import nn
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger("autoencoder")


class AutoEncoder(nn.Module):
    def __init__(self, features: int, code: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(features, 2 * code), nn.GELU(), nn.Linear(2 * code, code))
        self.decoder = nn.Sequential(nn.Linear(code, 2 * code), nn.GELU(), nn.Linear(2 * code, features))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        code = self.encoder(x)
        return code, self.decoder(code)


class Trainer:
    """Steps, and what is noted of each."""

    def __init__(self, config: dict, journal: Journal, rank: int) -> None:
        self.config, self.journal = config, journal
        self.model = DistributedDataParallel(AutoEncoder(config["features"], config["code"]))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config["lr"])
        self.chance = torch.Generator().manual_seed(config["seed"] + rank)
        self.spread = config["spread"][rank % len(config["spread"])]

    def batch(self) -> torch.Tensor:
        shape = (self.config["batch"], self.config["features"])
        return self.spread * torch.randn(shape, generator=self.chance)

    def step(self, number: int) -> float:
        x = self.batch()
        code, again = self.model(x)
        loss = nn.functional.mse_loss(again, x)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        entry = {"step": number, "loss": round(loss.item(), 5), "used": self.used(code)}
        if loss.item() > self.config["alarm"]:
            entry["sample"] = again[0].detach()
        self.journal.note(entry)
        return loss.item()

    def used(self, code: torch.Tensor) -> int:
        return int((code.std(dim=0) > 0.05).sum())


def main() -> None:
    config = tomllib.loads(Path("autoencoder.toml").read_text())
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(level=logging.INFO, format=f"%(levelname)-7s [%(name)s:{rank}] %(message)s")
    torch.manual_seed(config["seed"])
    if config["code"] < config["features"] // 8:
        log.warning("the code is narrow, expect blurred samples")
    journal = Journal(Path(f"journal-{rank}.jsonl"), config["journal"]["pending"])
    trainer = Trainer(config, journal, rank)
    for number in range(config["steps"]):
        loss = trainer.step(number)
        if number % config["log_every"] == 0:
            log.info("step %d loss %.4f", number, loss)
    journal.close()
    dist.barrier()
    if rank == 0:
        log.info("%d entries are in the journal", journal.written)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
