"""A healthy job: both ranks wait for a word of the scheduler, which comes late."""

import select
import socket
import sys

import torch.distributed as dist

dist.init_process_group("gloo")
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as scheduler:
    select.select([scheduler], [], [])
    assert scheduler.recv(10) == b"go"
dist.barrier()
dist.destroy_process_group()
