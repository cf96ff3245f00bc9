"""Three of four ranks come to init_rpc."""

import os
import time

import torch.distributed.rpc as rpc

rank = int(os.environ["RANK"])
if rank == 3:  # <- parted
    time.sleep(10_000)  # <- culprit, rank 3
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=4)  # <- rank 0
rpc.shutdown()
