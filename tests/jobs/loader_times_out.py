"""A DataLoader with a timeout gives up on a worker of rank 1 that waits for a far disk."""

import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Remote(Dataset):
    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.rank == 1 and index == 5:
            time.sleep(1000)  # <- culprit
        return torch.full((2,), float(index))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    loader = DataLoader(Remote(dist.get_rank()), batch_size=2, num_workers=1, timeout=5)
    for batch in loader:  # <- rank 1
        dist.all_reduce(batch)
    dist.destroy_process_group()
