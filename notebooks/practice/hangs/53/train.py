import os
import time

import torch.distributed.rpc as rpc

rank = int(os.environ["RANK"])
if rank == 3:
    time.sleep(10_000)
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=4)
rpc.shutdown()
