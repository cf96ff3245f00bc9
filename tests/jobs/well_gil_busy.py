"""A healthy job: rank 1 computes for 12 s in one C call that holds the interpreter lock."""

import time

import torch.distributed as dist


def one_call(seconds: float) -> int:
    began = time.perf_counter()
    pow(3, 300_000)
    cost = time.perf_counter() - began
    digits = int(300_000 * (seconds / cost) ** 0.63)  # Karatsuba
    return pow(3, digits) % 7


dist.init_process_group("gloo")
if dist.get_rank() == 1:
    one_call(12.0)
dist.barrier()
dist.destroy_process_group()
