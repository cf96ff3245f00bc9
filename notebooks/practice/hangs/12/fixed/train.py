import torch
import torch.distributed as dist


def check(loss: torch.Tensor) -> None:
    if dist.get_rank() == 1:
        print(loss)


dist.init_process_group("gloo")
check(torch.ones(1))
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
