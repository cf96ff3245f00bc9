"""A background thread prepares batches; the training loop takes them from a queue."""

import os
import queue
import threading

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def raw_records(rank):
    generator = torch.Generator().manual_seed(70 + rank)
    for number in range(60):
        values = torch.randn(16, 5, generator=generator).tolist()
        if rank == 1 and number == 22:
            values[3] = values[3][:4]
        yield values


def decode(values):
    rows = torch.tensor(values)
    return rows, rows.sum(-1).sign()


class Prefetcher:
    """Decodes ahead of the training loop, at most `depth` batches."""

    def __init__(self, source, depth=4):
        self.source = source
        self.ready = queue.Queue(maxsize=depth)
        self.thread = threading.Thread(target=self.produce, name="prefetch", daemon=True)

    def produce(self):
        for values in self.source:
            self.ready.put(decode(values))
        self.ready.put(None)

    def __iter__(self):
        self.thread.start()
        while True:
            item = self.ready.get()
            if item is None:
                return
            yield item


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(5, 20), nn.SiLU(), nn.Linear(20, 1))

    def forward(self, rows):
        return self.layers(rows).squeeze(-1)


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(2)
    model = DDP(Perceptron())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step, (rows, target) in enumerate(Prefetcher(raw_records(rank))):
        loss = nn.functional.soft_margin_loss(model(rows), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: {loss.item():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
