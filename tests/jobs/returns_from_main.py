"""Rank 1 has nothing to evaluate and returns from `main`."""

import torch
import torch.distributed as dist


def main(samples: list[int]) -> None:
    dist.barrier()
    share = samples[dist.get_rank() :: 2]
    if not share:
        return  # <- parted
    dist.all_reduce(torch.tensor([sum(share)]))


dist.init_process_group("gloo")
if __name__ == "__main__":
    main([7])
