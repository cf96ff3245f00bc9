import os
import sys

import torch.distributed.rpc as rpc
import torch.multiprocessing as mp

PORT = sys.argv[1]
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=PORT)


def work(rank: int) -> None:
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2)
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
