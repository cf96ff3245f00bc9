import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.barrier()
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
