import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

dist.init_process_group("gloo")
state = {"weight": torch.ones(16)}
saving = dcp.async_save(state, checkpoint_id="checkpoint")
saving.result()
dist.barrier()
dist.destroy_process_group()
