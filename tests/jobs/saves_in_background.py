"""Four ranks save in the background; rank 1 has left the save out, and the others wait for theirs."""

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from marks import about_to_block

dist.init_process_group("gloo")
state = {"weight": torch.ones(16)}
if dist.get_rank() != 1:  # <- parted
    saving = dcp.async_save(state, checkpoint_id="checkpoint")
    about_to_block()
    saving.result()  # <- rank 0, rank 2, rank 3
about_to_block()
dist.barrier()  # <- culprit, rank 1
dist.destroy_process_group()
