"""A healthy job: rank 1 looks again and again for a file that rank 0 writes late."""

import time
from pathlib import Path

import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    time.sleep(5)
    Path("vocabulary.txt").write_text("a b c")
else:
    while not Path("vocabulary.txt").exists():
        time.sleep(0.1)
dist.barrier()
dist.destroy_process_group()
