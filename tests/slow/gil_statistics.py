"""A thread that counts word pairs in plain Python shares the interpreter of one rank."""

import random
import threading
from collections import Counter
from itertools import pairwise

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 500
over = threading.Event()


def count_pairs(counts):
    numbers = random.Random(0).choices(range(50), k=10_000)
    while not over.is_set():
        for pair in pairwise(numbers):
            counts[pair] += 1  # <- slow


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    if dist.get_rank() == 0:
        threading.Thread(target=count_pairs, args=(Counter(),)).start()
    layers = [nn.Linear(128, 128) for _ in range(24)]
    for _ in range(STEPS):
        x = torch.randn(64, 128)
        for layer in layers:
            x = torch.tanh(layer(x))  # <- slow
        total = x.mean().detach().view(1)
        with ledger.around():
            dist.all_reduce(total)
    over.set()
    dist.destroy_process_group()


main()
