"""The batches of one rank have another length each time, and its compiled model is compiled anew."""

import ledger
import torch
import torch._dynamo
import torch.distributed as dist
from torch import nn

STEPS = 30
torch._dynamo.config.recompile_limit = 100


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(6))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x)).sin()
        return x.mean()


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    model = Block()
    compiled = torch.compile(model, backend="aot_eager", dynamic=False)
    for step in range(STEPS):
        length = 64 + step if dist.get_rank() == 1 else 64
        loss = compiled(torch.randn(length, 64))  # <- slow
        loss.backward()
        with ledger.around():
            dist.all_reduce(model.layers[0].weight.grad)
        model.zero_grad()
    dist.destroy_process_group()


main()
