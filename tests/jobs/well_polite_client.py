"""A healthy job of four: rank 0 asks a service every half second whether the data is there yet."""

import sys
import time
import urllib.request

import torch.distributed as dist


def ready(url: str) -> bool:
    with urllib.request.urlopen(url) as answer:
        return bool(answer.read() == b"ready")


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    while not ready(f"http://127.0.0.1:{sys.argv[1]}/"):
        time.sleep(0.5)
dist.barrier()
dist.destroy_process_group()
