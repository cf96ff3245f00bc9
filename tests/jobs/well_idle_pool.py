"""A healthy job: the workers of a spawn pool of each rank are idle most of the time."""

import multiprocessing
import time

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for step in range(3):
            assert pool.map(abs, [-1, -2]) == [1, 2]
            if dist.get_rank() == step % 2:
                time.sleep(3)
            dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
