"""The replay buffer of one rank is locked by the thread that fills it, for most of the time."""

import threading
import time

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 140
over = threading.Event()


class Replay:
    def __init__(self):
        self.lock = threading.Lock()
        self.samples = torch.randn(4096, 64)

    def fill(self):
        """Take what the simulator has; it is asked while the lock is held."""
        while not over.is_set():
            with self.lock:
                time.sleep(0.25)  # <- slow
                self.samples[:16] = torch.randn(16, 64)
            time.sleep(0.005)

    def draw(self):
        with self.lock:  # <- slow
            return self.samples[torch.randint(0, 4096, (256,))]


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    replay = Replay()
    if dist.get_rank() == 1:
        threading.Thread(target=replay.fill).start()
    model = nn.Linear(64, 64)
    for _ in range(STEPS):
        model(replay.draw()).pow(2).mean().backward()
        with ledger.around():
            dist.all_reduce(model.weight.grad)
        model.weight.data -= 0.01 * model.weight.grad
        model.zero_grad()
    over.set()
    dist.destroy_process_group()


main()
