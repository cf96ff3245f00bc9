import torch
import torch.distributed as dist

RESULT = 7

dist.init_process_group("gloo")
rank, tensor = dist.get_rank(), torch.zeros(4)
if rank == 0:
    for peer in range(1, dist.get_world_size()):
        dist.recv(tensor, peer, tag=RESULT)
else:
    dist.send(tensor, 0, tag=RESULT)
dist.barrier()
