"""A healthy job: both ranks wait for a key that a thread of rank 0 sets when its upload is done."""

import threading
import time

import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store


def upload() -> None:
    time.sleep(4)
    own.set("uploaded", "yes")


dist.init_process_group("gloo")
store = _get_default_store()
own = store.clone()  # two threads that share one would wait for each other
if dist.get_rank() == 0:
    threading.Thread(target=upload).start()
store.wait(["uploaded"])
dist.barrier()
dist.destroy_process_group()
