"""A healthy job of four: a pipeline whose third stage is slow."""

import time

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


class Slow(torch.nn.Linear):
    def forward(self, value: torch.Tensor) -> torch.Tensor:
        time.sleep(1.5 if dist.get_rank() == 2 else 0)
        return super().forward(value)


dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
stage = PipelineStage(Slow(8, 8), rank, size, torch.device("cpu"))
schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=torch.nn.functional.mse_loss)
for _ in range(2):
    if rank == 0:
        schedule.step(torch.randn(16, 8))
    elif rank == size - 1:
        schedule.step(target=torch.randn(16, 8))
    else:
        schedule.step()
dist.destroy_process_group()
