"""A healthy job of four: rank 3 prepares its data in C code, while threads show that it is alive."""

import hashlib
import threading
import time

import torch.distributed as dist


def beat(every: float) -> None:
    while True:
        time.sleep(every)


def prepare(seconds: float) -> str:
    until, data, digest = time.monotonic() + seconds, bytes(20_000_000), hashlib.sha256()
    while time.monotonic() < until:
        digest.update(data)
    return digest.hexdigest()


dist.init_process_group("gloo")
for every in (0.05, 0.5, 5.0):
    threading.Thread(target=beat, args=(every,), daemon=True).start()
if dist.get_rank() == 3:
    print(prepare(10.0))
dist.barrier()
dist.destroy_process_group()
