"""FSDP2 with a device mesh of named dimensions and an export of the full weights at the end."""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor


class Mixer(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
            for _ in range(depth))
        self.head = nn.Linear(dim, 1)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--dim", type=int, default=12)
    p.add_argument("--depth", type=int, default=3)
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--lr", type=float, default=1e-2)
    return p.parse_args()


def shard(model, mesh):
    for layer in model.layers:
        fully_shard(layer, mesh=mesh["dp"])
    return fully_shard(model, mesh=mesh["dp"])


def data(dim, rank, steps, batch=16):
    g = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        x = torch.randn(batch, dim, generator=g)
        yield x, x.abs().amax(1, keepdim=True)


def gathered(value):
    return value.full_tensor() if isinstance(value, DTensor) else value


class Exporter:
    """Writes the weights as a plain state dict, with the norms of the layers in the file name's manifest."""

    def __init__(self, directory, rank):
        self.directory = directory
        self.rank = rank

    def manifest(self, state):
        return {name: round(t.float().norm().item(), 4) for name, t in state.items()}

    def wanted(self, name):
        # the first layer is handed to the next job on every machine; the rest only goes to the writer
        return self.rank == 0 or name.startswith("layers.0.")

    def collect(self, model):
        return {name: gathered(p.detach()) for name, p in model.named_parameters() if self.wanted(name)}

    def export(self, model, step):
        state = self.collect(model)
        if self.rank == 0:
            os.makedirs(self.directory, exist_ok=True)
            torch.save({"step": step, "weights": state, "manifest": self.manifest(state)},
                       os.path.join(self.directory, "export.pt"))
            print(f"exported {len(state)} tensors", flush=True)
        dist.barrier()


def main():
    args = parse()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp",))
    torch.manual_seed(0)
    model = shard(Mixer(args.dim, args.depth), mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    for step, (x, y) in enumerate(data(args.dim, rank, args.steps)):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 4 == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)

    Exporter(os.path.join(tempfile.gettempdir(), "fsdp_export"), rank).export(model, args.steps)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
