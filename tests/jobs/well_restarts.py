"""A healthy job: rank 1 fails once; rank 0 needs seconds to end, and torchrun starts both again."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist


def save(number: int, frame: object) -> None:
    time.sleep(float(sys.argv[1]))
    raise SystemExit(1)


signal.signal(signal.SIGTERM, save)
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    if os.environ["RANK"] == "1":
        raise OSError("the disk is away")
    time.sleep(60)
dist.init_process_group("gloo")
for _ in range(3):
    dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
