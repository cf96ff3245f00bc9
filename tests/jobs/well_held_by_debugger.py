"""A healthy job: a debugger holds rank 1 for a while, as one that is attached to look around does."""

import ctypes
import os
import time

import torch.distributed as dist

ATTACH, DETACH, ANYBODY, THREADS_TOO = 16, 17, -1, 0x40000000  # linux/ptrace.h, linux/wait.h
ALLOW_DEBUGGER = 0x59616D61  # linux/prctl.h


def hold(pid: int, seconds: float) -> None:
    libc = ctypes.CDLL(None)
    if libc.ptrace(ATTACH, pid, 0, 0) == 0:
        os.waitpid(pid, THREADS_TOO)
        time.sleep(seconds)
        libc.ptrace(DETACH, pid, 0, 0)
    os._exit(0)


dist.init_process_group("gloo")
if dist.get_rank() == 1:
    ctypes.CDLL(None).prctl(ALLOW_DEBUGGER, ANYBODY, 0, 0, 0)
    me = os.getpid()
    if os.fork() == 0:
        hold(me, 12)
    os.wait()
dist.barrier()
dist.destroy_process_group()
