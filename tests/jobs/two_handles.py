"""Two groups, two reductions in the background: rank 2 has left out the second one."""

import torch
import torch.distributed as dist
from marks import about_to_block


def reduce_both(loss: torch.Tensor, count: torch.Tensor, groups: list[dist.ProcessGroup]) -> None:
    pending = [dist.all_reduce(loss, group=groups[0], async_op=True)]
    if dist.get_rank() != 2:
        pending.append(dist.all_reduce(count, group=groups[1], async_op=True))
    for handle in pending:
        about_to_block()
        handle.wait()  # <- rank 0, rank 1


dist.init_process_group("gloo")
both = [dist.new_group(group_desc="losses"), dist.new_group(group_desc="counts")]
for _ in range(2):
    reduce_both(torch.ones(1), torch.ones(1), both)
    about_to_block()
    dist.barrier()  # <- culprit, rank 2
dist.destroy_process_group()
