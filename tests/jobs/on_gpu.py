"""Runs a program of this folder, as it is, on the GPU of its local rank and with a backend of choice.

torchrun ... -m on_gpu cuda|cpu gloo|nccl|nccl-apart PROGRAM [ARG ...]

With nccl-apart each rank has a host of its own in the eyes of NCCL, which refuses two ranks of one host
on one GPU. Where ON_GPU_TIMEOUT is set, collectives time out after so many seconds.
"""

import os
import runpy
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

if __name__ == "__main__":
    device, backend, *sys.argv = sys.argv[1:]
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.set_default_device(device)
    if backend == "nccl-apart":
        backend, os.environ["NCCL_HOSTID"] = "nccl", f"rank{os.environ['RANK']}"
    limit = os.environ.get("ON_GPU_TIMEOUT")
    added = {"timeout": timedelta(seconds=int(limit))} if limit else {}
    if backend != "gloo" or added:  # gloo is what the programs ask for themselves
        join = dist.init_process_group
        dist.init_process_group = lambda _, *given, **named: join(backend, *given, **(added | named))
    runpy.run_path(sys.argv[0], run_name="__main__")
