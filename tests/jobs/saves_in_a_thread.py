"""A thread saves while the training goes on, and both use one group: chance orders their calls."""

import threading
import time

import torch
import torch.distributed as dist
from marks import about_to_block

trained = threading.Event()


def save() -> None:
    if dist.get_rank() == 1:
        trained.wait()
    dist.all_reduce(torch.ones(1))  # <- culprit


def train() -> None:
    saver = threading.Thread(target=save, name="saver")
    saver.start()
    while dist.get_rank() == 0 and not dist.group.WORLD._get_sequence_number_for_group():
        time.sleep(0.01)
    about_to_block()
    dist.barrier()  # <- rank 0, rank 1
    trained.set()
    saver.join()


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
