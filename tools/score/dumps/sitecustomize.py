"""In each process of a job: writes the Flight Recorder's dump when the file $DUMPS/wanted is there.

A user would have torch's debug server do that, or NCCL's watchdog: on a CPU only the program itself can.
"""

import os
import sys
import threading
import time

EVERY = 0.2


def _dump(folder: str) -> None:
    while not os.path.exists(os.path.join(folder, "wanted")):
        time.sleep(EVERY)
    module = sys.modules.get("torch.distributed.distributed_c10d")
    if module is None or not module.is_initialized():
        return
    from torch._C._distributed_c10d import _dump_fr_trace

    file = os.path.join(folder, f"fr_rank_{module.get_rank()}")
    with open(file + ".part", "wb") as staged:
        staged.write(_dump_fr_trace(True, True, False))
    os.replace(file + ".part", file)


if os.environ.get("DUMPS"):
    threading.Thread(target=_dump, args=(os.environ["DUMPS"],), daemon=True).start()
