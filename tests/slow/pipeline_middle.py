"""A pipeline of three stages with micro-batches; the middle stage got too many layers."""

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 12
MICRO_BATCHES = 6
SHAPE = (256, 256)


class Stage(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(256, 256) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))  # <- slow
        return x


def receive(rank):
    batch = torch.empty(SHAPE)
    with ledger.message(rank - 1, rank):
        dist.recv(batch, rank - 1)
    return batch


def send(batch, rank):
    with ledger.message(rank, rank + 1):
        dist.send(batch, rank + 1)


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    stage = Stage(depth=90 if rank == 1 else 10)
    with torch.no_grad():
        for _ in range(STEPS):
            for _ in range(MICRO_BATCHES):
                batch = receive(rank) if rank > 0 else torch.randn(SHAPE)
                batch = stage(batch)
                if rank < last:
                    send(batch, rank)
            with ledger.around():
                dist.barrier()
    dist.destroy_process_group()


main()
