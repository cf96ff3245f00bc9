"""Two ranks wait for a build that was killed and left its lock file behind."""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from marks import about_to_block
from torch.utils.file_baton import FileBaton


def load_extension(folder: Path) -> None:
    baton = FileBaton(str(folder / "lock"))
    if baton.try_acquire():
        baton.release()
    else:
        about_to_block()
        baton.wait()  # <- culprit, rank 0, rank 1


def train(rank: int, port: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    load_extension(Path("build"))
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


if __name__ == "__main__":
    Path("build").mkdir()
    Path("build", "lock").touch()  # what a killed build leaves
    mp.spawn(train, args=(sys.argv[1],), nprocs=2)
