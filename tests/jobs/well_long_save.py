"""A healthy job: rank 0 writes a large checkpoint to a slow disk while the others wait."""

import os
import time
from typing import BinaryIO

import torch
import torch.distributed as dist


class SlowDisk:
    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def write(self, data: bytes) -> int:
        time.sleep(len(data) / 40e6)
        return self.file.write(data)

    def flush(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    with open("checkpoint.pt", "wb") as file:
        torch.save({f"layer{n}": torch.zeros(2_500_000) for n in range(40)}, SlowDisk(file))
dist.barrier()
dist.destroy_process_group()
