import subprocess
import sys

import torch.distributed as dist

TALKATIVE = "for number in range(100_000): print('converted shard', number)"


def convert() -> int:
    program = subprocess.Popen([sys.executable, "-c", TALKATIVE], stdout=subprocess.PIPE)
    program.communicate()
    return program.returncode


dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:
    convert()
dist.barrier()
dist.destroy_process_group()
