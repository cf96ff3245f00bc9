"""A hang on a device: rank 0 alone gathers the state to save it; rank 1 is at the barrier behind."""

import torch
import torch.distributed as dist
from marks import about_to_block
from stand_in import synchronize


def full_state(shards: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    state = {}
    for name, shard in shards.items():
        whole = torch.empty(2 * len(shard))
        dist.all_gather_into_tensor(whole, shard)
        about_to_block()
        synchronize()  # <- culprit, rank 0
        state[name] = whole
    return state


dist.init_process_group("stand_in")
dist.all_reduce(torch.ones(4))
if dist.get_rank() == 0:  # <- parted
    full_state({"weight": torch.ones(4), "bias": torch.ones(2)})
about_to_block()
dist.barrier()  # <- rank 1
dist.destroy_process_group()
