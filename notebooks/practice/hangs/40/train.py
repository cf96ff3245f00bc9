import threading

import torch.distributed as dist

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
        with journal:
            print("paid")


dist.init_process_group("gloo")
if dist.get_rank() == 3:
    pay()
dist.barrier()
dist.destroy_process_group()
