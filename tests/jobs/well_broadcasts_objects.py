"""A healthy job: rank 0 fetches what it broadcasts while it is packed, and sleeps meanwhile."""

import time

import torch.distributed as dist


class Lazy:
    def __reduce__(self) -> tuple[type, tuple[str]]:
        time.sleep(6)
        return str, ("weights",)


dist.init_process_group("gloo")
objects = [Lazy() if dist.get_rank() == 0 else None]
dist.broadcast_object_list(objects, src=0)
dist.destroy_process_group()
