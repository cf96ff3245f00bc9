"""Tensor- and data-parallel groups of four ranks; ranks 1 and 2 overlap them in the other order."""

import torch
import torch.distributed as dist
from marks import about_to_block


def groups(rank: int) -> tuple[dist.ProcessGroup, dist.ProcessGroup]:
    made = {
        ranks: dist.new_group(list(ranks), group_desc=name)
        for name, pairs in (("tp", ((0, 1), (2, 3))), ("dp", ((0, 2), (1, 3))))
        for ranks in pairs
    }
    mine = [made[ranks] for ranks in made if rank in ranks]
    return mine[0], mine[1]


def step(tensor: dist.ProcessGroup, data: dist.ProcessGroup) -> None:
    activation, gradient = torch.randn(4), torch.randn(8)
    about_to_block()
    if dist.get_rank() in (1, 2):  # <- parted
        dist.all_reduce(gradient, group=data)  # <- rank 1, rank 2
        dist.all_reduce(activation, group=tensor)
    else:
        dist.all_reduce(activation, group=tensor)  # <- culprit, rank 0, rank 3
        dist.all_reduce(gradient, group=data)


dist.init_process_group("gloo")
step(*groups(dist.get_rank()))
dist.destroy_process_group()
