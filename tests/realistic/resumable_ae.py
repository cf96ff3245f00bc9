"""Autoencoder training that resumes from the scratch directory of the node.

Every worker keeps its scratch below $SCRATCH/worker<local rank>, as on our cluster, where the scratch
disks are local.
"""
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclass
class Config:
    dim: int = 20
    code: int = 4
    rows: int = 640
    batch_size: int = 32
    epochs: int = 5
    lr: float = 1e-3
    scratch: str = os.environ.get("SCRATCH", os.path.join(tempfile.gettempdir(), "resumable_ae_scratch"))


class AutoEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(cfg.dim, 32), nn.ReLU(), nn.Linear(32, cfg.code))
        self.dec = nn.Sequential(nn.Linear(cfg.code, 32), nn.ReLU(), nn.Linear(32, cfg.dim))

    def forward(self, x):
        return self.dec(self.enc(x))


def scratch_dir(cfg, rank):
    path = Path(cfg.scratch) / f"worker{rank}"
    path.mkdir(parents=True, exist_ok=True)
    return path


def previous_run(cfg, rank):
    """What the interrupted run left behind: the writer process had its checkpoint on its own disk."""
    if rank == 0:
        shutil.rmtree(cfg.scratch, ignore_errors=True)
    dist.barrier()
    path = scratch_dir(cfg, rank)
    if rank == 0:
        torch.manual_seed(0)
        net = AutoEncoder(cfg)
        torch.save({"epoch": 2, "model": net.state_dict()}, path / "last.pt")
    dist.barrier()


def load_if_available(net, path):
    """Returns the epoch to start from."""
    ckpt = path / "last.pt"
    if not ckpt.exists():
        return 0
    state = torch.load(ckpt, weights_only=True)
    net.load_state_dict(state["model"])
    return state["epoch"] + 1


def save(net, path, epoch, rank):
    if rank == 0:
        tmp = path / "last.pt.tmp"
        torch.save({"epoch": epoch, "model": net.state_dict()}, tmp)
        tmp.rename(path / "last.pt")


def run_epoch(model, loader, optimizer):
    total = 0.0
    for (x,) in loader:
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    previous_run(cfg, rank)

    g = torch.Generator().manual_seed(2)
    data = TensorDataset(torch.randn(cfg.rows, cfg.dim, generator=g))
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=cfg.batch_size, sampler=sampler)

    path = scratch_dir(cfg, rank)
    net = AutoEncoder(cfg)
    first_epoch = load_if_available(net, path)
    model = DDP(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)

    for epoch in range(first_epoch, cfg.epochs):
        sampler.set_epoch(epoch)
        loss = run_epoch(model, loader, optimizer)
        save(net, path, epoch, rank)
        if rank == 0:
            print(f"epoch {epoch}: loss {loss:.5f}", flush=True)

    results = [None] * world
    dist.all_gather_object(results, {"rank": rank, "loss": loss})
    if rank == 0:
        print("final", results)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
