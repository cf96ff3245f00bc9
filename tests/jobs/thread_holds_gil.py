"""A thread of rank 1 is inside a C function that never gives the interpreter lock back."""

import ctypes
import threading

import torch
import torch.distributed as dist

wanted = threading.Event()


def prefetch() -> None:
    wanted.wait()
    ctypes.PyDLL(None).sleep(600)  # <- culprit, rank 1


dist.init_process_group("gloo")
threading.Thread(target=prefetch, daemon=True).start()
for step in range(20):
    dist.all_reduce(torch.ones(1))  # <- rank 0
    if step == 10 and dist.get_rank() == 1:
        wanted.set()
dist.destroy_process_group()
