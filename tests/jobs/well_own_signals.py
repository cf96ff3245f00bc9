"""A healthy job: it has a watchdog, a timer and a handler of its own."""

import faulthandler
import os
import signal
import time

import torch
import torch.distributed as dist

seen = []
signal.signal(signal.SIGUSR1, lambda number, frame: seen.append("usr1"))
signal.signal(signal.SIGALRM, lambda number, frame: seen.append("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)
faulthandler.dump_traceback_later(2, repeat=True)
dist.init_process_group("gloo")
for step in range(3):
    if dist.get_rank() == step % 2:
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(2.5)
    dist.all_reduce(torch.ones(1))
assert "usr1" in seen and seen.count("alarm") > 5
faulthandler.cancel_dump_traceback_later()
signal.setitimer(signal.ITIMER_REAL, 0)
dist.destroy_process_group()
