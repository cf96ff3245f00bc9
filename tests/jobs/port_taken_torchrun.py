"""An innocent program: its launcher asks for a port that another job on this machine owns."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
