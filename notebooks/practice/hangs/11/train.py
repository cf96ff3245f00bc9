import json
import socket
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def address(rank: int, port: int) -> str:
    settings = {"port": port}
    if rank == 1:
        settings = json.loads(Path("cluster.json").read_text())
    return f"tcp://127.0.0.1:{settings['port']}"


def train(rank: int, port: int) -> None:
    dist.init_process_group("gloo", init_method=address(rank, port), rank=rank, world_size=2)
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


def old_configuration() -> str:
    with socket.socket() as last_week:
        last_week.bind(("127.0.0.1", 0))
        return json.dumps({"port": last_week.getsockname()[1]})


if __name__ == "__main__":
    Path("cluster.json").write_text(old_configuration())
    mp.spawn(train, args=(int(sys.argv[1]),), nprocs=2)
