"""Joins the process group at module level, so every spawned DataLoader worker joins it again."""

import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset


def join() -> None:
    dist.init_process_group(  # <- culprit
        "gloo",
        init_method=f"tcp://127.0.0.1:{os.environ['MASTER_PORT']}",
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
    )


join()

if __name__ == "__main__":
    data = TensorDataset(torch.randn(40, 4))
    loader = DataLoader(
        data, batch_size=10, num_workers=1, multiprocessing_context=os.environ.get("START", "spawn")
    )
    total = torch.zeros(1)
    for (batch,) in loader:
        total += batch.sum()
    dist.all_reduce(total)
    dist.destroy_process_group()
