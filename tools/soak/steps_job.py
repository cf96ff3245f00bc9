"""A rank of torchrun that waits for another, which takes small steps for more than 30 s."""

from __future__ import annotations

import time

import torch.distributed as dist

LIFE = 40.0


def main() -> None:
    """Rank 0 waits in a barrier for rank 1."""
    dist.init_process_group("gloo")
    until = time.monotonic() + LIFE
    while dist.get_rank() == 1 and time.monotonic() < until:
        time.sleep(1.0)  # two lines, so that a stack shows that it moves
        time.sleep(1.0)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
