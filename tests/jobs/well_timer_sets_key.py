"""A healthy job: a timer of rank 1 sets the key that rank 0 waits for, while rank 1 is in a barrier."""

import threading

import torch.distributed as dist

dist.init_process_group("gloo")
store = dist.distributed_c10d._get_default_store()
if dist.get_rank() == 1:
    threading.Timer(8, store.set, ("warm", "1")).start()
else:
    store.wait(["warm"])
dist.barrier()
dist.destroy_process_group()
