"""A rank of torchrun with a gloo group, a DataLoader worker and a lock.

torchrun --nproc-per-node=2 torch_job.py FOLDER
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

ITEMS = 20
"""How many items a rank loads, one in a tenth of a second."""


class Slow(Dataset[torch.Tensor]):
    """Items that take their time."""

    def __len__(self) -> int:
        return ITEMS

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.1)
        return torch.full((4,), float(index))


def main(folder: Path) -> None:
    """Add up what the worker loads, over all ranks."""
    with (folder / f"lock-{os.environ['RANK']}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        dist.init_process_group("gloo")
        (folder / f"port-{os.environ['RANK']}").write_text(os.environ["MASTER_PORT"])
        for batch in DataLoader(Slow(), num_workers=1):
            dist.all_reduce(batch)
        dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
