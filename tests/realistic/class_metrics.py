"""Evaluation of a classifier: an F1 for each class and their mean."""

import os

import torch
import torch.distributed as dist
from evalkit.report import Report
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

NAMES = ["cat", "dog", "bird", "axolotl"]


def make_set(rows, seed):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(rows, 8, generator=generator)
    labels = features[:, :3].argmax(-1)
    return features, labels


def train_loader(rank, world):
    data = TensorDataset(*make_set(320, 1))
    sampler = DistributedSampler(data, world, rank, shuffle=True, seed=3)
    return DataLoader(data, batch_size=20, sampler=sampler)


def eval_loader(rank, world):
    features, labels = make_set(80, 2)
    labels[7] = 3
    data = TensorDataset(features, labels)
    return DataLoader(data, 20, sampler=DistributedSampler(data, world, rank, shuffle=False))


@torch.no_grad()
def predict(model, loader):
    model.eval()
    predicted, labels = [], []
    for features, target in loader:
        predicted.append(model.module(features).argmax(-1))
        labels.append(target)
    return torch.cat(predicted), torch.cat(labels)


def main():
    dist.init_process_group("gloo")
    rank, world = int(os.environ["RANK"]), dist.get_world_size()
    torch.manual_seed(8)
    model = DDP(nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, len(NAMES))))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loader = train_loader(rank, world)
    for epoch in range(3):
        model.train()
        loader.sampler.set_epoch(epoch)
        for features, labels in loader:
            loss = nn.functional.cross_entropy(model(features), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        report = Report(NAMES).fill(*predict(model, eval_loader(rank, world)))
        if rank == 0:
            print(f"epoch {epoch}: macro F1 {report.macro():.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
