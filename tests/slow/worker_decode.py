"""One rank's shard is packed harder than the other's, and its only loader worker cannot keep up."""

import bz2
import random

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Shard(Dataset):
    def __init__(self, rank):
        words = random.Random(0).choices(["rank", "waits", "for", "another", "group"], k=90000)
        self.text = " ".join(words).encode()
        self.packed = bz2.compress(self.text) if rank == 1 else None

    def __len__(self):
        return 120

    def __getitem__(self, index):
        text = self.text
        if self.packed is not None:
            text = bz2.decompress(self.packed)  # <- slow
        window = text[index : index + 2048]
        return torch.tensor(list(window), dtype=torch.float32)


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    with ledger.around():
        model = DistributedDataParallel(nn.Linear(2048, 16))
    backward = ledger.Backward(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = DataLoader(Shard(dist.get_rank()), batch_size=2, num_workers=1)
    for _ in range(8):
        for batch in loader:
            loss = model(batch).pow(2).mean()
            with backward:
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
