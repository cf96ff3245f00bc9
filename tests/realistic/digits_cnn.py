"""Small CNN on synthetic digits, DDP, with patience-based early stopping and checkpoints.

    torchrun --standalone --nproc-per-node=2 digits_cnn.py --epochs 12
"""
import argparse
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=12)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--patience", type=int, default=2)
    p.add_argument("--min-delta", type=float, default=0.0)
    p.add_argument("--out", default=None)
    return p.parse_args()


def make_digits(n, seed, noise):
    g = torch.Generator().manual_seed(seed)
    protos = torch.randn(10, 1, 12, 12, generator=torch.Generator().manual_seed(1))
    y = torch.randint(0, 10, (n,), generator=g)
    x = protos[y] + noise * torch.randn(n, 1, 12, 12, generator=g)
    return TensorDataset(x, y)


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 3 * 3, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


class EarlyStopping:
    """Stop when the monitored loss has not improved for `patience` checks."""

    def __init__(self, patience, min_delta=0.0):
        self.patience = patience
        self.min_delta = min_delta
        self.best = float("inf")
        self.bad_checks = 0

    def step(self, value):
        if value < self.best - self.min_delta:
            self.best = value
            self.bad_checks = 0
        else:
            self.bad_checks += 1
        return self.bad_checks >= self.patience


class CheckpointWriter:
    def __init__(self, directory, rank):
        self.directory = directory
        self.rank = rank
        if rank == 0:
            os.makedirs(directory, exist_ok=True)

    def save(self, model, optimizer, epoch):
        if self.rank == 0:
            path = os.path.join(self.directory, f"epoch{epoch:02d}.pt")
            torch.save({"model": model.module.state_dict(), "opt": optimizer.state_dict(), "epoch": epoch}, path)
        dist.barrier()


def train_one_epoch(model, loader, optimizer):
    model.train()
    running = 0.0
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    return running / len(loader)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    loss, n = 0.0, 0
    for x, y in loader:
        loss += F.cross_entropy(model.module(x), y, reduction="sum").item()
        n += len(y)
    return loss / n


def main():
    args = parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)

    train = make_digits(1024, seed=5, noise=1.0)
    sampler = DistributedSampler(train, shuffle=True, drop_last=True)
    loader = DataLoader(train, batch_size=args.batch_size, sampler=sampler)
    # the second half of the validation data was recorded with the newer, noisier device
    val = torch.utils.data.ConcatDataset([make_digits(128, seed=21, noise=1.0), make_digits(128, seed=22, noise=6.0)])
    per_rank = len(val) // world
    val_loader = DataLoader(Subset(val, range(rank * per_rank, (rank + 1) * per_rank)), batch_size=64)

    model = DDP(SmallCNN())
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    stopper = EarlyStopping(args.patience, args.min_delta)
    writer = CheckpointWriter(args.out or os.path.join(tempfile.gettempdir(), "digits_cnn_ckpt"), rank)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train_loss = train_one_epoch(model, loader, optimizer)
        val_loss = validate(model, val_loader)
        if rank == 0:
            print(f"epoch {epoch:2d} train {train_loss:.4f} val {val_loss:.4f}", flush=True)
        if stopper.step(val_loss):
            print(f"[rank {rank}] no improvement for {args.patience} epochs", flush=True)
            break
        writer.save(model, optimizer, epoch)

    final = torch.tensor([stopper.best])
    dist.all_reduce(final, op=dist.ReduceOp.MIN)
    if rank == 0:
        print("best validation loss", final.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
