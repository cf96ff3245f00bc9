"""A DataLoader's worker hands over batches that the shared memory has no room for."""

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(3_000_000)


dist.init_process_group("gloo")
for batch in DataLoader(Images(), batch_size=2, num_workers=2 * dist.get_rank()):  # <- culprit
    dist.all_reduce(batch.sum())
dist.destroy_process_group()
