"""A DataLoader worker of rank 1 is stopped, as a debugger or Ctrl-Z does it."""

import os
import signal

import torch
import torch.distributed as dist
from marks import about_to_block
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.rank == 1 and index == 9:
            about_to_block()
            os.kill(os.getpid(), signal.SIGSTOP)  # <- culprit
        return torch.full((4,), float(index))


def train() -> None:
    dist.init_process_group("gloo")
    for batch in DataLoader(Samples(dist.get_rank()), batch_size=4, num_workers=1):  # <- rank 1
        loss = batch.sum()
        dist.all_reduce(loss)  # <- rank 0
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
