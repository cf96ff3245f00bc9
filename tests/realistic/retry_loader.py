"""Images from a flaky store: reads are tried again, batches that cannot be read are left out."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class StoreError(RuntimeError):
    pass


class Store:
    """Answers with made-up images; some keys fail once, some always."""

    def __init__(self, rank):
        self.rank = rank
        self.attempts = {}
        self.once = {3, 9}
        self.always = {14} if rank == 1 else set()

    def read(self, key):
        self.attempts[key] = self.attempts.get(key, 0) + 1
        if key in self.always:
            raise StoreError(f"503 for object {key}")
        if key in self.once and self.attempts[key] == 1:
            raise StoreError(f"timeout for object {key}")
        generator = torch.Generator().manual_seed(key + 1000 * self.rank)
        return torch.randn(8, 3, 12, 12, generator=generator), torch.arange(8) % 5


def read_with_retries(store, key, retries=3):
    for attempt in range(retries):
        try:
            return store.read(key)
        except StoreError:
            if attempt + 1 == retries:
                raise
    raise AssertionError("unreachable")


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(8, 5)

    def forward(self, images):
        return self.head(self.features(images).flatten(1))


def run_epoch(model, optimizer, store, keys):
    failed = []
    total = torch.zeros(1)
    for key in keys:
        try:
            images, labels = read_with_retries(store, key)
        except StoreError as error:
            failed.append((key, str(error)))
            continue
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total, failed


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(9)
    model = DDP(SmallCNN())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    store = Store(rank)
    for epoch in range(2):
        total, failed = run_epoch(model, optimizer, store, range(20))
        dist.reduce(total, dst=0)
        dist.barrier()
        if rank == 0:
            print(f"epoch {epoch}: {total.item():.2f}, {len(failed)} failed", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
