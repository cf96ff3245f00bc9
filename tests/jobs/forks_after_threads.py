"""A child is forked when OpenMP has its threads, and waits for some that it has not."""

import multiprocessing

import torch


def work() -> None:
    torch.rand(2000, 2000).exp().sum()


if __name__ == "__main__":
    torch.set_num_threads(4)
    work()
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()  # <- culprit, rank 0
