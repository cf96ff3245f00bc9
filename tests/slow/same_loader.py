"""Both ranks wait for their loader workers, which are equally slow."""

import time

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

EPOCHS = 20


class Frames(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        time.sleep(0.1)  # a camera that gives ten frames a second
        return torch.randn(256)


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    with ledger.around():
        model = DistributedDataParallel(nn.Linear(256, 16))
    backward = ledger.Backward(model)
    for _ in range(EPOCHS):  # short ones: a worker that has started later stays late to the end of one
        for batch in DataLoader(Frames(), batch_size=2, num_workers=1):
            with backward:
                model(batch).pow(2).mean().backward()
            model.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
