"""A test of distributed prediction: the predictions of all ranks are gathered in order."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

WORLD = 2


def make_data():
    generator = torch.Generator().manual_seed(12)
    return TensorDataset(torch.randn(75, 6, generator=generator))


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 4))

    def forward(self, features):
        return self.net(features).softmax(-1)


def shard(data, rank):
    return Subset(data, range(rank, len(data), WORLD))


def gather(scores):
    parts = [torch.zeros_like(scores) for _ in range(WORLD)]
    dist.all_gather(parts, scores)
    return torch.cat(parts)


@torch.no_grad()
def predict(model, loader):
    rows = []
    for (features,) in loader:
        rows.append(gather(model(features)))
    return torch.cat(rows)


def worker(rank, folder):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=WORLD
    )
    torch.manual_seed(0)
    data = make_data()
    loader = DataLoader(shard(data, rank), batch_size=19)
    predictions = predict(Scorer(), loader)
    torch.save(predictions, os.path.join(folder, f"rank{rank}.pt"))
    dist.barrier()
    dist.destroy_process_group()


def test_scores_are_probabilities():
    features = torch.randn(5, 6)
    assert torch.allclose(Scorer()(features).sum(-1), torch.ones(5))


def test_every_row_is_predicted(tmp_path):
    mp.spawn(worker, args=(str(tmp_path),), nprocs=WORLD)
    first = torch.load(tmp_path / "rank0.pt")
    second = torch.load(tmp_path / "rank1.pt")
    assert len(first) == len(make_data())
    assert torch.equal(first, second)
