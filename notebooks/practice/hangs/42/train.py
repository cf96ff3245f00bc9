import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
neighbours = [0, 1, 2] if rank < 2 else [1, 2, 3]
group = dist.new_group(neighbours)
dist.all_reduce(torch.ones(4), group=group)
dist.barrier()
dist.destroy_process_group()
