"""A healthy job: each rank begins a while after the one before it, so that none floods the disk."""

import os
import sys
import time

import torch
import torch.distributed as dist

time.sleep(float(sys.argv[1]) * int(os.environ["RANK"]))
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
