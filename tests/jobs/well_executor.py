"""A healthy job: an executor of rank 0 fetches a page, and what it calls in the end sets a key."""

import sys
from concurrent.futures import Future, ThreadPoolExecutor
from urllib.request import urlopen

import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store


def fetched(_: Future[object]) -> None:
    own.set("fetched", "yes")


dist.init_process_group("gloo")
store = _get_default_store()
own = store.clone()
if dist.get_rank() == 0:
    page = ThreadPoolExecutor(1).submit(urlopen, f"http://127.0.0.1:{sys.argv[1]}/late")
    page.add_done_callback(fetched)
store.wait(["fetched"])
dist.barrier()
dist.destroy_process_group()
