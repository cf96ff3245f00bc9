"""Rank 1 is inside a C function that never gives the interpreter lock back."""

import ctypes

import torch
import torch.distributed as dist


def parse_with_c_library() -> None:
    ctypes.PyDLL(None).sleep(600)  # <- culprit, rank 1


dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:
    parse_with_c_library()
dist.all_reduce(torch.ones(1))  # <- rank 0
dist.destroy_process_group()
