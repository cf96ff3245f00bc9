import os

import torch.distributed.rpc as rpc

rank = int(os.environ["RANK"])
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=3)
if rank == 1:
    os._exit(0)
rpc.shutdown()
