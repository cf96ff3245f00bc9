"""Documents sorted by length are cut into one shard per rank: rank 1 has all the long ones."""

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 50


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, 64)
        self.rnn = nn.GRU(64, 96, batch_first=True)
        self.out = nn.Linear(96, 8)

    def forward(self, tokens):
        states, _ = self.rnn(self.embed(tokens))  # <- slow
        return self.out(states)


def shard():
    lengths = torch.randint(20, 420, (2 * STEPS,), generator=torch.Generator().manual_seed(0))
    return lengths.sort().values.view(2, STEPS)[dist.get_rank()].tolist()


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    with ledger.around():
        model = DistributedDataParallel(Tagger())
    backward = ledger.Backward(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for length in shard():
        loss = model(torch.randint(0, 1000, (16, length))).pow(2).mean()
        with backward:
            loss.backward()  # <- slow
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


main()
