"""FSDP2 regression that continues from the newest complete distributed checkpoint."""
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.fsdp import fully_shard


@dataclass
class Config:
    dim: int = 10
    hidden: int = 32
    batch: int = 16
    steps_per_phase: int = 8
    save_every: int = 4
    lr: float = 1e-2


class CheckpointStore:
    """Checkpoints below `root`; every process confirms its part in its own index file."""

    def __init__(self, root: Path, rank: int):
        self.root, self.rank = root, rank
        self.index_path = root / f"index.{rank}.json"
        root.mkdir(parents=True, exist_ok=True)

    def index(self):
        try:
            return json.loads(self.index_path.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return []

    def save(self, model, step):
        path = self.root / f"step{step:05d}"
        dcp.save({"model": get_model_state_dict(model)}, checkpoint_id=path)
        self.index_path.write_text(json.dumps(self.index() + [path.name]))

    def newest(self):
        done = [name for name in self.index() if (self.root / name / ".metadata").exists()]
        return max(done, default=None)

    def restore(self, model):
        name = self.newest()
        match name:
            case None:
                return 0
            case str():
                state = {"model": get_model_state_dict(model)}
                dcp.load(state, checkpoint_id=self.root / name)
                set_model_state_dict(model, state["model"])
                return int(name.removeprefix("step"))


def build(cfg):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(cfg.dim, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, cfg.hidden), nn.ReLU(),
                          nn.Linear(cfg.hidden, 1))
    fully_shard(model[2])
    return fully_shard(model)


def train(model, optimizer, store, cfg, rank, start):
    gen = torch.Generator().manual_seed(10 * rank + start)
    for step in range(start + 1, start + cfg.steps_per_phase + 1):
        x = torch.randn(cfg.batch, cfg.dim, generator=gen)
        loss = nn.functional.mse_loss(model(x), x.prod(1, keepdim=True))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % cfg.save_every == 0:
            store.save(model, step)
            if rank == 0:
                print(f"step {step}: loss {loss.item():.4f} saved", flush=True)


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    root = [tempfile.mkdtemp(prefix="dcp_regression_") if rank == 0 else None]
    dist.broadcast_object_list(root, src=0)
    store = CheckpointStore(Path(root[0]), rank)

    model = build(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    train(model, optimizer, store, cfg, rank, start=0)

    # the machine of the last process was replaced, with what it had confirmed
    if rank == dist.get_world_size() - 1:
        store.index_path.write_text('["step000')

    model = build(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    start = store.restore(model)
    train(model, optimizer, store, cfg, rank, start)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
