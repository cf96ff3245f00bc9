import torch
import torch.distributed as dist

dist.init_process_group("gloo")
losses = torch.rand(3)
dist.all_reduce(losses)
dist.barrier()
dist.destroy_process_group()
