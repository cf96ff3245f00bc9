"""Two tensor-parallel pairs; one rank of the second pair also keeps an average of the weights."""

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 120


class Average:
    """Running averages of weights, entry by entry."""

    def __init__(self, layer):
        self.values = layer.weight.detach().flatten().tolist()

    def update(self, layer):
        new = layer.weight.detach().flatten().tolist()
        pairs = zip(self.values, new, strict=True)
        self.values = [0.99 * old + 0.01 * value for old, value in pairs]  # <- slow


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    rank = dist.get_rank()
    pairs = [(0, 1), (2, 3)]
    groups = [dist.new_group(pair) for pair in pairs]
    pair, group = pairs[rank // 2], groups[rank // 2]
    layer = nn.Linear(1024, 1024, bias=False)
    average = Average(layer) if rank == 3 else None
    for _ in range(STEPS):
        partial = layer(torch.randn(16, 1024))
        with ledger.around(ranks=pair):
            dist.all_reduce(partial.detach(), group=group)
        partial.pow(2).mean().backward()
        with ledger.around():
            dist.all_reduce(layer.weight.grad)
        layer.weight.data -= 0.01 * layer.weight.grad
        layer.zero_grad()
        if average:
            average.update(layer)
    dist.destroy_process_group()


main()
