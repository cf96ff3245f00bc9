"""A healthy job: the ranks wait for a key that the process that started them sets."""

import multiprocessing
import sys
import time

import torch.distributed as dist


def train(rank: int, port: int) -> None:
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    dist.init_process_group("gloo", store=dist.PrefixStore("job", store), rank=rank, world_size=2)
    store.wait(["begin"])
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    port = int(sys.argv[1])
    store = dist.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=train, args=(rank, port)) for rank in range(2)]
    for process in ranks:
        process.start()
    time.sleep(12)
    store.set("begin", "yes")
    for process in ranks:
        process.join()
