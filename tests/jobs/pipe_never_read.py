"""Rank 1 waits for a program whose output it has asked for and does not read: the pipe is full."""

import subprocess
import sys

import torch.distributed as dist
from marks import about_to_block

TALKATIVE = "for number in range(100_000): print('converted shard', number)"


def convert() -> int:
    program = subprocess.Popen([sys.executable, "-c", TALKATIVE], stdout=subprocess.PIPE)
    about_to_block()
    return program.wait()  # <- culprit, rank 1


dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:  # <- parted
    convert()
dist.barrier()  # <- rank 0
dist.destroy_process_group()
