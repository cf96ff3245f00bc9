"""Gradients are averaged while the next batch is made ready; one rank sorts its batch by length."""

import random

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 180


def prepare(step, by_length):
    source = random.Random(step)
    words = ["".join(source.choices("abcdefgh", k=source.randint(1, 9))) for _ in range(400)]
    if by_length:
        for _ in range(1500):
            words = sorted(words, key=lambda word: (len(word), word))  # <- slow
    return torch.tensor([float(len(word)) for word in words]).view(4, 100)


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    model = nn.Linear(100, 1000)
    batch = torch.randn(4, 100)
    for step in range(STEPS):
        model(batch).pow(2).mean().backward()
        call = ledger.posted()
        work = dist.all_reduce(model.weight.grad, async_op=True)
        batch = prepare(step, by_length=dist.get_rank() == 1)
        with ledger.around(call):
            work.wait()
        model.weight.data -= 1e-6 * model.weight.grad
        model.zero_grad()
    dist.destroy_process_group()


main()
