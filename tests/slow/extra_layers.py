"""Two tasks share a trunk; the head of one is three times as deep as the other's."""

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 160


class Task(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.trunk = nn.Linear(256, 256)
        self.head = nn.ModuleList(nn.Linear(256, 256) for _ in range(depth))

    def forward(self, x):
        x = torch.relu(self.trunk(x))
        for layer in self.head:
            x = torch.relu(layer(x))  # <- slow
        return x.mean()


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    torch.manual_seed(0)
    model = Task(depth=24 if dist.get_rank() == 1 else 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(torch.randn(512, 256))
        loss.backward()  # <- slow
        for parameter in model.trunk.parameters():
            with ledger.around():
                dist.all_reduce(parameter.grad)
        optimizer.step()
    dist.destroy_process_group()


main()
