"""A healthy job: threads wait for work for ever beside a main thread that has some."""

import queue
import threading
import time

import torch
import torch.distributed as dist


def write_logs(lines: queue.Queue[str]) -> None:
    while True:
        print(lines.get())


dist.init_process_group("gloo")
lines: queue.Queue[str] = queue.Queue()
for _ in range(4):
    threading.Thread(target=write_logs, args=(lines,), daemon=True).start()
for step in range(4):
    if dist.get_rank() == step % 2:
        time.sleep(2)
    dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
