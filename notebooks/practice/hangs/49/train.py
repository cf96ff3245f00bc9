import os
import sys

import torch.distributed.rpc as rpc

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
rpc.init_rpc("worker0", rank=0, world_size=2)
rpc.shutdown()
