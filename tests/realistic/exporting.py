"""Export of a trained model: check, write, compare."""

import os

import torch
import torch.distributed as dist


class ExportError(Exception):
    pass


def check_ranges(state):
    for name, value in state.items():
        if not torch.isfinite(value).all():
            raise ExportError(f"{name} is not finite")


def write_shard(state, folder, rank):
    path = os.path.join(folder, f"shard-{rank}.pt")
    with open(path, "xb") as stream:
        torch.save(state, stream)
    return path


def fingerprint(state):
    return sum(value.double().sum() for value in state.values()).reshape(1)


def export(state, folder, rank, world):
    """Write this rank's shard and compare its sum with the other ranks'."""
    check_ranges(state)
    try:
        path = write_shard(state, folder, rank)
    except OSError as error:
        print(f"rank {rank}: cannot export: {error}", flush=True)
        return None
    sums = [torch.zeros(1, dtype=torch.double) for _ in range(world)]
    dist.all_gather(sums, fingerprint(state))
    return path, torch.cat(sums)
