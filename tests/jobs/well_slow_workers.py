"""A healthy job: a DataLoader worker of rank 1 needs seconds for a sample."""

import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(self.seconds)
        return torch.full((4,), float(index))


def main() -> None:
    dist.init_process_group("gloo")
    loader = DataLoader(Samples(5.0 * dist.get_rank()), batch_size=2, num_workers=2)
    for batch in loader:
        dist.all_reduce(batch.sum())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
