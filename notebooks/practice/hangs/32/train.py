import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
halves = [dist.new_group([0, 1, 2, 3]), dist.new_group([4, 5, 6, 7])]
mine = halves[rank // 4]
for step in range(4):
    group = None if rank == 5 and step == 2 else mine
    dist.all_reduce(torch.ones(4), group=group)
dist.barrier()
dist.destroy_process_group()
