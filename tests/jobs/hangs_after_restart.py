"""Four ranks fail once; the second attempt goes on from a file that only rank 0 has written."""

import os
from pathlib import Path

import torch
import torch.distributed as dist
from marks import about_to_block

dist.init_process_group("gloo")
saved = Path(f"step-{dist.get_rank()}.pt")
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    if dist.get_rank() == 0:
        torch.save(3, saved)
    dist.barrier()
    raise OSError("the disk is away")
start = torch.load(saved) if saved.exists() else 0
for _ in range(start, 5):  # <- parted
    about_to_block()
    dist.all_reduce(torch.ones(4))  # <- rank 1, rank 2, rank 3
about_to_block()
dist.barrier()  # <- culprit, rank 0
dist.destroy_process_group()
