"""A healthy job: whoever starts the ranks sends each its settings through standard input, late."""

import os
import subprocess
import sys
import time


def train() -> None:
    import torch.distributed as dist

    settings = sys.stdin.readline()
    assert settings == "lr 0.1\n"
    dist.init_process_group("gloo")
    dist.barrier()
    dist.destroy_process_group()


def start(rank: int, port: str) -> subprocess.Popen[str]:
    job = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    command = [sys.executable, __file__]
    return subprocess.Popen(command, env={**os.environ, **job}, stdin=subprocess.PIPE, text=True)


if "RANK" in os.environ:
    train()
else:
    ranks = [start(rank, sys.argv[1]) for rank in range(2)]
    time.sleep(8)
    for rank in ranks:
        assert rank.stdin is not None
        rank.stdin.write("lr 0.1\n")
        rank.stdin.close()
    for rank in ranks:
        rank.wait()
