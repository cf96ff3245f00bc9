import torch
import torch.distributed as dist

dist.init_process_group("gloo")
store = dist.distributed_c10d._get_default_store()
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 0:
    store.wait(["data of rank 1"])
else:
    store.set("data of rank 1", "ready")
dist.barrier()
dist.destroy_process_group()
