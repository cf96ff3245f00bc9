"""A start script counts its ranks from one, so nobody is rank 0."""

import os
import subprocess
import sys

import torch
import torch.distributed as dist
from marks import about_to_block

RANKS = (1, 2)


def start(port: str) -> int:
    running = []
    for rank in RANKS:
        settings = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
        environment = {**os.environ, **settings, "MASTER_PORT": port}
        running.append(subprocess.Popen([sys.executable, __file__], env=environment))
    return max(process.wait() for process in running)


def train() -> None:
    about_to_block()
    dist.init_process_group("gloo")  # <- culprit, rank 1
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


if "RANK" in os.environ:
    train()
else:
    sys.exit(start(sys.argv[1]))
