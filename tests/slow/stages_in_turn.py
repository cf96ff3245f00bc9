"""A model cut into three stages without micro-batches: each computes while the others wait."""

import time

import ledger
import torch
import torch.distributed as dist

STEPS = 45


def stage(batch):
    time.sleep(0.1)  # the layers of a stage, on a device
    return batch.tanh()


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    for _ in range(STEPS):
        batch = torch.randn(64, 64)
        if rank > 0:
            with ledger.message(rank - 1, rank):
                dist.recv(batch, rank - 1)
        batch = stage(batch)
        if rank < last:
            with ledger.message(rank, rank + 1):
                dist.send(batch, rank + 1)
        with ledger.around():
            dist.barrier()
    dist.destroy_process_group()


main()
