"""Two of four ranks evaluate in a group of their own and disagree there; the others are done."""

import torch
import torch.distributed as dist
from marks import about_to_block


def evaluate(group: dist.ProcessGroup) -> None:
    scores = torch.ones(4)
    about_to_block()
    if dist.get_rank() == 0:  # <- parted
        dist.all_reduce(scores, group=group)  # <- culprit, rank 0
    else:
        dist.barrier(group=group)  # <- rank 1


dist.init_process_group("gloo")
evaluators = dist.new_group([0, 1], group_desc="evaluators")
if dist.get_rank() in (0, 1):
    evaluate(evaluators)
about_to_block()
dist.barrier()  # <- rank 2, rank 3
dist.destroy_process_group()
