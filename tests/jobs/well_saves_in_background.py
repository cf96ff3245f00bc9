"""A healthy job of four: a checkpoint is written in the background, and one rank is late for it."""

import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

dist.init_process_group("gloo")
state = {"weight": torch.ones(1_000_000)}
for step in range(2):
    if dist.get_rank() == 3:
        time.sleep(4)
    saving = dcp.async_save(state, checkpoint_id=f"checkpoint-{step}")
    saving.result()
dist.barrier()
dist.destroy_process_group()
