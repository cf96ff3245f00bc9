"""A healthy job: rank 0 computes in torch's threads while its all_reduce is on the way."""

import os

os.environ["OMP_NUM_THREADS"] = "2"

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.set_num_threads(2)
gradient = torch.ones(1000)
activations = torch.zeros(4)
if dist.get_rank() == 0:
    work = dist.all_reduce(gradient, async_op=True)
    large = torch.randn(9000, 9000)
    large @ large
    dist.send(activations, 1)
    work.wait()
else:
    dist.recv(activations, 0)
    dist.all_reduce(gradient)
dist.destroy_process_group()
