"""A healthy job: rank 0 waits for a semaphore of its helper while its all_reduce is on the way."""

import multiprocessing
import time

import torch
import torch.distributed as dist


def fetch(ready: object) -> None:
    time.sleep(5)
    ready.release()


dist.init_process_group("gloo")
gradient, activations = torch.ones(10), torch.zeros(4)
if dist.get_rank() == 0:
    ready = multiprocessing.get_context("fork").Semaphore(0)
    helper = multiprocessing.get_context("fork").Process(target=fetch, args=(ready,))
    helper.start()
    work = dist.all_reduce(gradient, async_op=True)
    ready.acquire()
    dist.send(activations, 1)
    work.wait()
    helper.join()
else:
    dist.recv(activations, 0)
    dist.all_reduce(gradient)
dist.destroy_process_group()
