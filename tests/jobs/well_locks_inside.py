"""A healthy job of four: the threads of rank 2 take turns with a lock that one keeps for long."""

import threading
import time

import torch.distributed as dist

lock = threading.RLock()


def work(seconds: float) -> None:
    with lock:
        time.sleep(seconds)


dist.init_process_group("gloo")
if dist.get_rank() == 2:
    threads = [threading.Thread(target=work, args=(seconds,)) for seconds in (6.0, 1.0, 1.0)]
    for thread in threads:
        thread.start()
    work(0.0)
    for thread in threads:
        thread.join()
dist.barrier()
dist.destroy_process_group()
