"""Rank 1 asks a server for its shards; the server has taken the call and never answers."""

import socket
import sys

import torch.distributed as dist
from marks import about_to_block


def ask(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as server:
        server.sendall(b"shards?")
        about_to_block()
        return server.recv(1024)  # <- culprit, rank 1


dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:  # <- parted
    ask(int(sys.argv[1]))
dist.barrier()  # <- rank 0
dist.destroy_process_group()
