"""A healthy job: rank 1 starts programs, one of which fails, and a pool, while rank 0 waits."""

import multiprocessing
import subprocess
import sys
import time

import torch.distributed as dist


def square(number: int) -> int:
    time.sleep(0.5)
    return number * number


def prepare() -> None:
    subprocess.run([sys.executable, "-c", "raise SystemExit(3)"], check=False)
    subprocess.run(["sleep", "6"], check=True)
    piped = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(4); print('done')"], stdout=subprocess.PIPE
    )
    assert piped.stdout is not None and piped.stdout.read() == b"done\n"
    piped.wait()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert sum(pool.map(square, range(12))) == 506


if __name__ == "__main__":
    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        prepare()
    dist.barrier()
    dist.destroy_process_group()
