"""A healthy job: rank 0 downloads the data set from a slow server while the others wait."""

import sys
from urllib.request import urlopen

import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    with urlopen(f"http://127.0.0.1:{sys.argv[1]}/data") as answer:
        assert len(answer.read()) == 40_000
dist.barrier()
dist.destroy_process_group()
