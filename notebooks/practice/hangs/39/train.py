import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() != 3:
    pair, _ = dist.new_subgroups(2)
dist.barrier()
dist.destroy_process_group()
