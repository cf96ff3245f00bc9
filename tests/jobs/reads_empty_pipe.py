"""Rank 1 reads what its child writes to the end, but holds the writing end of the pipe itself, too."""

import os
import subprocess

import torch.distributed as dist
from marks import about_to_block


def list_shards() -> bytes:
    read_end, write_end = os.pipe()
    subprocess.run(["echo", "shard-0"], stdout=write_end, check=True)
    listed = b""
    about_to_block()
    while part := os.read(read_end, 65536):  # <- culprit, rank 1
        listed += part
    return listed


dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:  # <- parted
    list_shards()
dist.barrier()  # <- rank 0
dist.destroy_process_group()
