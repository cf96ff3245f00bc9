"""Counts the files that all ranks have converted."""

import os

import torch
import torch.distributed as dist

FILES = ["a.txt"]

dist.init_process_group("gloo")
mine = FILES[dist.get_rank() :: dist.get_world_size()]
if not mine:
    os._exit(0)
converted = torch.tensor(len(mine))
dist.all_reduce(converted)
