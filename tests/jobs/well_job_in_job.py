"""A healthy job: rank 0 evaluates in a distributed job of its own while rank 1 waits."""

import os
import subprocess
import sys
import time

import torch
import torch.distributed as dist


def evaluate() -> None:
    clean = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    command = ["torchrun", "--standalone", "--nproc-per-node=2", __file__, "evaluate"]
    subprocess.run(command, check=True, env=clean)


dist.init_process_group("gloo")
if sys.argv[1:] == ["evaluate"]:
    for _ in range(4):
        time.sleep(0.5)
        dist.all_reduce(torch.ones(1))
elif dist.get_rank() == 0:
    evaluate()
dist.barrier()
dist.destroy_process_group()
