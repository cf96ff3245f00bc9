"""A thread averages a metric beside the training; on rank 1 it comes before the gradients."""

import threading

import torch
import torch.distributed as dist
from marks import about_to_block

first_is_there = threading.Event()


def average_metric(metric: torch.Tensor) -> None:
    if dist.get_rank() == 0:
        first_is_there.wait()
    handle = dist.broadcast(metric, src=0, async_op=True)
    first_is_there.set()
    handle.wait()


def train() -> None:
    metric, gradient = torch.ones(1), torch.randn(16)
    logger = threading.Thread(target=average_metric, args=(metric,), name="metrics")
    logger.start()
    if dist.get_rank() == 1:
        first_is_there.wait()
    handle = dist.all_reduce(gradient, async_op=True)  # <- culprit
    first_is_there.set()
    about_to_block()
    handle.wait()  # <- rank 0, rank 1
    logger.join()


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
