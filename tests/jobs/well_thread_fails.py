"""A healthy job: a thread and a child of rank 1 fail, which is logged, and the job goes on."""

import logging
import multiprocessing
import threading
import time

import torch
import torch.distributed as dist


def beat() -> None:
    raise ConnectionError("no metrics server")


dist.init_process_group("gloo")
if dist.get_rank() == 1:
    threading.Thread(target=beat).start()
    child = multiprocessing.get_context("fork").Process(target=beat)
    child.start()
    child.join()
    try:
        beat()
    except ConnectionError:
        logging.exception("no metrics")
    time.sleep(4)
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
