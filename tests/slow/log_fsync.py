"""One rank runs with the debug log on, each line of which is forced to the disk."""

import os
import tempfile

import ledger
import torch
import torch.distributed as dist
from torch import nn

STEPS = 80


class Log:
    def __init__(self):
        self.file = tempfile.TemporaryFile("w")  # noqa: SIM115

    def write(self, line):
        self.file.write(line + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())  # <- slow


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    log = Log() if dist.get_rank() == 1 else None
    model = nn.Linear(512, 512)
    for step in range(STEPS):
        out = model(torch.randn(512, 512))
        out.pow(2).mean().backward()
        if log:
            for sample in range(80):
                log.write(f"{step} {sample} {out[sample].norm():.4f}")
        for parameter in model.parameters():
            with ledger.around():
                dist.all_reduce(parameter.grad)
            parameter.data -= 0.01 * parameter.grad
        model.zero_grad()
    dist.destroy_process_group()


main()
