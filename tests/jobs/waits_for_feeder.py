"""Five ranks: rank 2 waits for a thread of its own, which looks for a file that nobody writes."""

import queue
import threading
import time
from pathlib import Path

import torch.distributed as dist

found: "queue.Queue[str]" = queue.Queue()


def look() -> None:
    while not Path("next_shard").exists():
        time.sleep(0.2)
    found.put("next_shard")


dist.init_process_group("gloo")
if dist.get_rank() == 2:  # <- parted
    threading.Thread(target=look, daemon=True).start()
    print(found.get())  # <- culprit, rank 2
dist.barrier()  # <- rank 0, rank 1, rank 3, rank 4
dist.destroy_process_group()
