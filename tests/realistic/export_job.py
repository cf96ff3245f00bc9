"""Train a little, then export one shard a rank."""

import os
import tempfile

import torch
import torch.distributed as dist
from exporting import export
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def prepare(rank):
    """A folder of this run; a shard of an earlier try is still in rank 1's."""
    folder = tempfile.mkdtemp(prefix=f"export-{rank}-")
    if rank == 1:
        with open(os.path.join(folder, "shard-1.pt"), "wb") as stream:
            stream.write(b"an earlier try")
    return folder


def make_batch(generator):
    features = torch.randn(24, 12, generator=generator)
    return features, (features[:, :3].sum(-1) > 0).long()


def train(model, steps, generator):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        features, labels = make_batch(generator)
        loss = nn.functional.cross_entropy(model(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.detach()


def summarise(loss, result, rank):
    mean = loss.clone()
    dist.reduce(mean, dst=0)
    if rank == 0:
        print(f"loss {mean.item() / dist.get_world_size():.3f}, export {result}", flush=True)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(4)
    model = DDP(nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2)))
    folder = prepare(rank)
    loss = train(model, 30, torch.Generator().manual_seed(rank))
    result = export(model.module.state_dict(), folder, rank, world)
    summarise(loss, result, rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
