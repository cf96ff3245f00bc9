"""Mixture of experts: each expert's load is reduced in a process group of its own."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

WORLD = 2
EXPERTS = ["code", "prose", "tables"]


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, len(EXPERTS), bias=False)
        with torch.no_grad():
            self.gate.weight.copy_(torch.eye(3, 6))

    def forward(self, tokens):
        return self.gate(tokens).argmax(-1)


def make_tokens(rank, step):
    generator = torch.Generator().manual_seed(1000 * rank + step)
    tokens = torch.rand(40, 6, generator=generator)
    order = [2, 1, 0] if rank == 1 and step >= 3 else [0, 1, 2]
    for row, column in enumerate(order):
        tokens[row] = 0
        tokens[row, column] = 5.0
    return tokens


def count_loads(chosen):
    """Tokens of each expert, in a table that grows as experts are met."""
    loads = {}
    for index in chosen.tolist():
        name = EXPERTS[index]
        loads[name] = loads.get(name, 0) + 1
    for name in EXPERTS:
        loads.setdefault(name, 0)
    return loads


def reduce_loads(loads, groups):
    totals = {}
    for name in loads:
        total = torch.tensor([float(loads[name])])
        dist.all_reduce(total, group=groups[name])
        totals[name] = int(total)
    return totals


def balance_loss(totals):
    counts = torch.tensor([totals[name] for name in EXPERTS], dtype=torch.float)
    share = counts / counts.sum()
    return float((share * share).sum() * len(EXPERTS))


def worker(rank, port_file):
    dist.init_process_group("gloo", init_method=f"file://{port_file}", rank=rank, world_size=WORLD)
    groups = {name: dist.new_group(list(range(WORLD))) for name in EXPERTS}
    torch.manual_seed(0)
    router = Router()
    for step in range(8):
        chosen = router(make_tokens(rank, step))
        totals = reduce_loads(count_loads(chosen), groups)
        if rank == 0:
            print(f"step {step}: {totals} balance {balance_loss(totals):.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    port_file = f"/tmp/unseen_rendezvous_{os.getpid()}"
    if os.path.exists(port_file):
        os.remove(port_file)
    mp.spawn(worker, args=(port_file,), nprocs=WORLD)


if __name__ == "__main__":
    main()
