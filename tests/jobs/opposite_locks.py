"""Four ranks: two threads of rank 3 take two locks in opposite order, the others wait for it."""

import threading

import torch.distributed as dist
from marks import about_to_block

accounts, journal = threading.Lock(), threading.Lock()
both = threading.Barrier(2)


def book() -> None:
    with journal:
        both.wait()
        with accounts:
            print("booked")


def pay() -> None:
    threading.Thread(target=book, daemon=True).start()
    with accounts:
        both.wait()
        about_to_block()
        with journal:  # <- culprit, rank 3
            print("paid")


dist.init_process_group("gloo")
if dist.get_rank() == 3:  # <- parted
    pay()
dist.barrier()  # <- rank 0, rank 1, rank 2
dist.destroy_process_group()
