import threading

import torch.distributed as dist

accounts, journal = threading.Lock(), threading.Lock()


def book() -> None:
    with accounts, journal:
        print("booked")


def pay() -> None:
    booking = threading.Thread(target=book)
    booking.start()
    with accounts, journal:
        print("paid")
    booking.join()


dist.init_process_group("gloo")
if dist.get_rank() == 3:
    pay()
dist.barrier()
dist.destroy_process_group()
