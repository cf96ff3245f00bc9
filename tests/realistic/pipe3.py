"""A pipeline of three stages, one a rank, with micro-batches sent from rank to rank."""

import math
import os

import torch
import torch.distributed as dist
from torch import nn

WIDTH = 16
MICRO = 6
BATCH = 40


def make_stage(rank):
    torch.manual_seed(20 + rank)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())


class FirstStage:
    def __init__(self, module):
        self.module = module
        self.generator = torch.Generator().manual_seed(5)

    def run(self):
        batch = torch.randn(BATCH, WIDTH, generator=self.generator)
        sent = []
        for micro in batch.split(MICRO):
            if len(micro) < MICRO:
                continue
            out = self.module(micro)
            dist.send(out.detach(), dst=1)
            sent.append(out)
        for out in sent:
            grad = torch.empty_like(out)
            dist.recv(grad, src=1)
            out.backward(grad)


class MiddleStage:
    def __init__(self, module, micros):
        self.module = module
        self.micros = micros

    def run(self):
        pairs = []
        for _ in range(self.micros):
            inputs = torch.empty(MICRO, WIDTH)
            dist.recv(inputs, src=0)
            inputs.requires_grad_()
            out = self.module(inputs)
            dist.send(out.detach(), dst=2)
            pairs.append((inputs, out))
        for inputs, out in pairs:
            grad = torch.empty_like(out)
            dist.recv(grad, src=2)
            out.backward(grad)
            dist.send(inputs.grad, dst=0)


class LastStage:
    def __init__(self, module, micros):
        self.module = module
        self.micros = micros

    def run(self):
        inputs = []
        total = 0.0
        for _ in range(self.micros):
            received = torch.empty(MICRO, WIDTH)
            dist.recv(received, src=1)
            inputs.append(received.requires_grad_())
        for received in inputs:
            loss = self.module(received).square().mean()
            loss.backward()
            total += loss.item()
            dist.send(received.grad, dst=1)
        print(f"loss {total / len(inputs):.4f}", flush=True)


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    module = make_stage(rank)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    micros = math.ceil(BATCH / MICRO)
    if rank == 0:
        stage = FirstStage(module)
    elif rank == 1:
        stage = MiddleStage(module, micros)
    else:
        stage = LastStage(module, micros)
    for _ in range(3):
        optimizer.zero_grad()
        stage.run()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
