"""Rank 1 fails in the first attempt; in the second one rank 0 waits for a store that is not there."""

import os
from datetime import timedelta

import torch.distributed as dist

if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 1:
        raise ValueError("the loss is not a number")  # <- culprit
    dist.barrier()
else:
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:9", timeout=timedelta(seconds=3))
