"""A start script forgets to count: both processes call themselves rank 0."""

import os
import subprocess
import sys

import torch
import torch.distributed as dist


def start(port: str) -> int:
    settings = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    command = [sys.executable, __file__]
    running = [subprocess.Popen(command, env={**os.environ, **settings}) for _ in range(2)]
    return max(process.wait() for process in running)


def train() -> None:
    dist.init_process_group("gloo")  # <- culprit
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


if "RANK" in os.environ:
    train()
else:
    sys.exit(start(sys.argv[1]))
