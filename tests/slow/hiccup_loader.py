"""Equal steps for 65 s; once, the loader worker of one rank needs five for a damaged sample."""

import time

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, damaged):
        self.damaged = damaged

    def __len__(self):
        return 300

    def __getitem__(self, index):
        time.sleep(5.4 if index == self.damaged else 0.1)
        return torch.randn(64)


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    model = nn.Linear(64, 64)
    damaged = 100 if dist.get_rank() == 1 else None
    for batch in DataLoader(Samples(damaged), batch_size=1, num_workers=1):
        model(batch).pow(2).mean().backward()
        time.sleep(0.2)  # the step of a device: the loader is faster, and catches up
        with ledger.around():
            dist.all_reduce(model.weight.grad)
        model.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
