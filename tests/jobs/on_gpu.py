"""Runs a program of this folder, as it is, on the GPU of its local rank and with a backend of choice.

torchrun ... -m on_gpu cuda|cpu gloo|nccl PROGRAM [ARG ...]
"""

import os
import runpy
import sys

import torch
import torch.distributed as dist

if __name__ == "__main__":
    device, backend, *sys.argv = sys.argv[1:]
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.set_default_device(device)
    if backend != "gloo":  # which the programs ask for themselves
        join = dist.init_process_group
        dist.init_process_group = lambda _, *given, **named: join(backend, *given, **named)
    runpy.run_path(sys.argv[0], run_name="__main__")
