"""A healthy job: rank 0 needs seconds to pack what it gives to `all_gather_object`."""

import time

import torch.distributed as dist


class Results:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __getstate__(self) -> dict[str, float]:
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            sorted(range(1000))
        return {"seconds": self.seconds}


dist.init_process_group("gloo")
found: list[Results | None] = [None, None]
dist.all_gather_object(found, Results(4.0 * (1 - dist.get_rank())))
dist.destroy_process_group()
