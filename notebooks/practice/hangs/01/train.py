import os
import signal

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.rank == 1 and index == 9:
            os.kill(os.getpid(), signal.SIGSTOP)
        return torch.full((4,), float(index))


def train() -> None:
    dist.init_process_group("gloo")
    for batch in DataLoader(Samples(dist.get_rank()), batch_size=4, num_workers=1):
        loss = batch.sum()
        dist.all_reduce(loss)
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
