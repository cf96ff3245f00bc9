"""Healthy, with roles: rank 0 is a parameter server, the other ranks train asynchronously."""

import os
import time

import torch
import torch.distributed as dist

SIZE = 12
STOP, GRADIENT = 0.0, 1.0


class Server:
    def __init__(self, trainers, rate=0.05):
        self.trainers = trainers
        self.rate = rate
        self.weights = torch.zeros(SIZE)

    def serve(self):
        running = self.trainers
        updates = 0
        message = torch.empty(SIZE + 1)
        while running:
            source = dist.recv(message)
            if message[0] == STOP:
                running -= 1
                continue
            self.weights -= self.rate * message[1:]
            updates += 1
            dist.send(self.weights, dst=source)
        return updates


class Trainer:
    def __init__(self, rank):
        self.generator = torch.Generator().manual_seed(rank)
        self.weights = torch.zeros(SIZE)
        self.pause = 0.05 * rank
        self.truth = torch.linspace(-1, 1, SIZE)

    def gradient(self):
        features = torch.randn(32, SIZE, generator=self.generator)
        error = features @ (self.weights - self.truth)
        return features.T @ error / len(features)

    def train(self, steps):
        for _ in range(steps):
            time.sleep(self.pause)
            dist.send(torch.cat([torch.tensor([GRADIENT]), self.gradient()]), dst=0)
            dist.recv(self.weights, src=0)
        dist.send(torch.zeros(SIZE + 1), dst=0)


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    if rank == 0:
        server = Server(dist.get_world_size() - 1)
        print(f"{server.serve()} updates", flush=True)
        print(server.weights, flush=True)
    else:
        Trainer(rank).train(steps=60 + 40 * rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
