"""A healthy job: the ranks wait for a key that a program started by rank 0 sets."""

import subprocess
import sys

import torch.distributed as dist
import torch.multiprocessing as mp

PREPARE = """
import sys, time
import torch.distributed as dist
time.sleep(4)
dist.TCPStore("127.0.0.1", int(sys.argv[1]), is_master=False).set("prepared", "yes")
"""


def train(rank: int, port: int) -> None:
    store = dist.TCPStore("127.0.0.1", port, is_master=rank == 0)
    dist.init_process_group("gloo", store=dist.PrefixStore("job", store), rank=rank, world_size=2)
    if rank == 0:
        subprocess.Popen([sys.executable, "-c", PREPARE, str(port)])
    store.wait(["prepared"])
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(int(sys.argv[1]),), nprocs=2)
