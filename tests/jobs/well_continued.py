"""A healthy job: rank 0 stops rank 1 while it reads its memory, and lets it go on."""

import os
import signal
import time

import torch.distributed as dist

dist.init_process_group("gloo")
pids = [0, 0]
dist.all_gather_object(pids, os.getpid())
if dist.get_rank() == 0:
    os.kill(pids[1], signal.SIGSTOP)
    time.sleep(5)
    os.kill(pids[1], signal.SIGCONT)
dist.barrier()
dist.destroy_process_group()
