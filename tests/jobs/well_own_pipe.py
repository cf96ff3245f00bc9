"""A healthy job of two: rank 1 waits at a pipe of its own, into which a signal handler of its writes."""

import os
import signal

import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 1:
    read, write = os.pipe()
    signal.signal(signal.SIGALRM, lambda *_: os.write(write, b"now"))
    signal.alarm(8)
    print(os.read(read, 3))
dist.barrier()
dist.destroy_process_group()
