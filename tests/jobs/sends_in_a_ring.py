"""Six ranks in a ring: each waits for a handle from the left before it sends to the right."""

import torch
import torch.distributed as dist
from marks import about_to_block

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
received, left, right = torch.zeros(4), (rank - 1) % size, (rank + 1) % size
handle = dist.irecv(received, src=left)
assert handle is not None
about_to_block()
handle.wait()  # <- culprit, rank 0, rank 1, rank 2, rank 3, rank 4, rank 5
dist.send(received + 1, dst=right)
dist.destroy_process_group()
