"""The loaders of four ranks read from one file server, which answers each of them late at random."""

import random
import time

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Remote(Dataset):
    def __len__(self):
        return 80

    def __getitem__(self, index):
        time.sleep(random.uniform(0.1, 0.2))
        return torch.randn(64)


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    random.seed(dist.get_rank())
    model = nn.Linear(64, 64)
    for batch in DataLoader(Remote(), batch_size=1):
        model(batch).pow(2).mean().backward()
        with ledger.around():
            dist.all_reduce(model.weight.grad)
        model.zero_grad()
    dist.destroy_process_group()


main()
