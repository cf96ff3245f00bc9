"""A healthy job: rank 0 builds an extension in C++, for which rank 1 waits."""

import shutil

import torch
import torch.distributed as dist
from torch.utils.cpp_extension import load_inline

TWICE = "torch::Tensor twice(torch::Tensor value) { return value + value; }"


def build() -> None:
    if shutil.which("ninja") and shutil.which("c++"):
        extension = load_inline("well_compiled", TWICE, functions=["twice"], build_directory=".")
        print(extension.twice(torch.ones(2)))


dist.init_process_group("gloo")
if dist.get_rank() == 0:
    build()
dist.barrier()
dist.destroy_process_group()
