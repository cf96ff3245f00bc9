import os
import subprocess
import sys

import torch
import torch.distributed as dist

RANKS = (0, 1)


def start(port: str) -> int:
    running = []
    for rank in RANKS:
        settings = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
        environment = {**os.environ, **settings, "MASTER_PORT": port}
        running.append(subprocess.Popen([sys.executable, __file__], env=environment))
    return max(process.wait() for process in running)


def train() -> None:
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


if "RANK" in os.environ:
    train()
else:
    sys.exit(start(sys.argv[1]))
