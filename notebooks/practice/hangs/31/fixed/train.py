import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

dist.init_process_group("gloo")
rank, size, device = dist.get_rank(), dist.get_world_size(), torch.device("cpu")
stage = PipelineStage(torch.nn.Linear(8, 8), rank, size, device)
schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=torch.nn.functional.mse_loss)
batch = torch.randn(16, 8)
for _ in range(3):
    if rank == 0:
        schedule.step(batch)
    elif rank == size - 1:
        schedule.step(target=batch)
    else:
        schedule.step()
dist.barrier()
dist.destroy_process_group()
