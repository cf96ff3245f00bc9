"""A healthy job: a script starts its ranks one after the other, at a moment of its choice."""

import os
import subprocess
import sys
import time


def train() -> None:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


def start(rank: int, port: str) -> subprocess.Popen[bytes]:
    job = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return subprocess.Popen([sys.executable, __file__], env={**os.environ, **job})


if "RANK" in os.environ:
    train()
else:
    ranks = [start(0, sys.argv[1])]
    time.sleep(12)
    ranks.append(start(1, sys.argv[1]))
    for rank in ranks:
        rank.wait()
