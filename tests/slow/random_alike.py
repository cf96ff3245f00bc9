"""Batches differ in length at random, in the same way on all four ranks."""

import random

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 90


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    lengths = random.Random(dist.get_rank())
    embed, rnn = nn.Embedding(1000, 64), nn.GRU(64, 64, batch_first=True)
    for _ in range(STEPS):
        tokens = torch.randint(0, 1000, (8, lengths.randint(60, 100)))
        rnn(embed(tokens))[0].pow(2).mean().backward()
        with ledger.around():
            dist.all_reduce(rnn.weight_hh_l0.grad)
        rnn.zero_grad()
    dist.destroy_process_group()


main()
