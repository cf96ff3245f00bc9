"""Four ranks send to rank 0: one of them with a tag that rank 0 does not ask for."""

import torch
import torch.distributed as dist
from marks import about_to_block

RESULT, GRADIENT = 7, 8

dist.init_process_group("gloo")
rank, tensor = dist.get_rank(), torch.zeros(4)
about_to_block()
if rank == 0:
    for peer in range(1, dist.get_world_size()):
        dist.recv(tensor, peer, tag=RESULT)  # <- culprit, rank 0
else:
    dist.send(tensor, 0, tag=GRADIENT if rank == 2 else RESULT)  # <- rank 2, rank 3
about_to_block()
dist.barrier()  # <- rank 1
