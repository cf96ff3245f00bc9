"""A hang on a device: rank 1 has a batch less, and has ended when rank 0 reads the last loss."""

import torch
import torch.distributed as dist
from stand_in import Scalar

dist.init_process_group("stand_in")
batches = 5 if dist.get_rank() == 0 else 4
for _ in range(batches):  # <- parted
    dist.all_reduce(torch.ones(4))
    if Scalar().item() > 100:  # <- rank 0
        break
print("trained")
