"""A healthy job: a thread of rank 1 prepares data before a collective in a group of its own."""

import threading
import time

import torch
import torch.distributed as dist


def exchange(group: dist.ProcessGroup) -> None:
    time.sleep(6.0 * dist.get_rank())
    dist.all_reduce(torch.ones(1), group=group)


dist.init_process_group("gloo")
group = dist.new_group()
if dist.get_rank() == 0:
    exchange(group)
    dist.barrier()
else:
    thread = threading.Thread(target=exchange, args=(group,))
    thread.start()
    dist.barrier()
    thread.join()
dist.destroy_process_group()
