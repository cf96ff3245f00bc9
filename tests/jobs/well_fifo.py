"""A healthy job: rank 0 opens a FIFO and reads what rank 1 writes into it late."""

import os
import time

import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    os.mkfifo("words")
dist.barrier()
if dist.get_rank() == 0:
    with open("words") as words:
        assert words.read() == "a b"
else:
    time.sleep(5)
    with open("words", "w") as words:
        words.write("a")
        words.flush()
        time.sleep(3)
        words.write(" b")
dist.barrier()
dist.destroy_process_group()
