"""A healthy job: rank 1 is 12 s in one C call that holds the interpreter lock and uses no CPU."""

import ctypes

import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 1:
    ctypes.PyDLL(None).sleep(12)
dist.barrier()
dist.destroy_process_group()
