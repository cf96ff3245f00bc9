"""Only one of the two workers of a remote call is ever started."""

import os
import sys

import torch.distributed.rpc as rpc

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
rpc.init_rpc("worker0", rank=0, world_size=2)  # <- culprit, rank 0
rpc.shutdown()
