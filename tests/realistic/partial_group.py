"""Two ranks train, one evaluates; the trainers have a group of their own."""

import os

import torch
import torch.distributed as dist
from torch import nn

TRAINERS = [0, 1]
EVALUATOR = 2


class Layout:
    """Which rank does what, and its process group."""

    def __init__(self, rank):
        self.rank = rank
        self.group = None
        self.everyone = None
        self.is_trainer = rank in TRAINERS

    def build(self):
        if self.is_trainer:
            self.group = dist.new_group(TRAINERS)
        self.everyone = dist.new_group([*TRAINERS, EVALUATOR])
        return self


def average_gradients(model, group):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, group=group)
        parameter.grad /= len(TRAINERS)


def train_round(model, optimizer, layout, generator):
    for _ in range(10):
        features = torch.randn(32, 8, generator=generator)
        loss = (model(features).squeeze(-1) - features.sum(-1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, layout.group)
        optimizer.step()


def share_weights(model, group=None):
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=TRAINERS[0], group=group)


@torch.no_grad()
def evaluate(model, generator):
    features = torch.randn(256, 8, generator=generator)
    return float((model(features).squeeze(-1) - features.sum(-1)).abs().mean())


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    share_weights(model)
    layout = Layout(rank).build()
    generator = torch.Generator().manual_seed(rank)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for number in range(4):
        if layout.is_trainer:
            train_round(model, optimizer, layout, generator)
        share_weights(model, layout.everyone)
        if rank == EVALUATOR:
            print(f"round {number}: error {evaluate(model, generator):.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
