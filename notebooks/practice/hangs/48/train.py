import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Images(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == 5 and dist.get_rank() == 1:
            time.sleep(10_000)
        return torch.zeros(4)


dist.init_process_group("gloo")
for batch in DataLoader(Images(), num_workers=1):
    dist.all_reduce(batch)
dist.destroy_process_group()
