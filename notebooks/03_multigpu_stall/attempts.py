"""What a scheduler does around `zero.py`: a cache, a first attempt that is killed, and the job."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from build import missing_tools

BIN = str(Path(sys.executable).parent)
JOB = ["torchrun", "--standalone", "--nproc-per-node", "2", "zero.py"]


@contextmanager
def cache() -> Iterator[Path]:
    """DeepSpeed's folder in TORCH_EXTENSIONS_DIR or in a temporary folder, never in the user's cache."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    os.environ["PATH"] = os.pathsep.join((BIN, os.environ["PATH"]))
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(os.environ.setdefault("TORCH_EXTENSIONS_DIR", temporary), "deepspeed_shm_comm")


def killed_attempt(folder: Path) -> None:
    """Leaves in the cache what a build leaves that is killed with all below it, as by a time limit."""
    if lacking := missing_tools():
        print(f"no {' and no '.join(lacking)} here: the lock is put there without a build", flush=True)
        folder.mkdir(parents=True)
        (folder / "lock").touch()
        return
    attempt = subprocess.Popen([sys.executable, "build.py"], start_new_session=True)
    while not ((folder / "build.ninja").exists() and compiles(attempt.pid)):
        if attempt.poll() is not None:
            sys.exit("the first attempt ended before it could be killed")
        time.sleep(0.05)
    os.killpg(attempt.pid, signal.SIGKILL)
    attempt.wait()
    print("the first attempt was killed while it compiled; the job is started again", flush=True)


def compiles(pid: int) -> bool:
    below = psutil.Process(pid).children(recursive=True)
    return any(child.name().startswith(("cc1plus", "clang")) for child in below)


def run_job() -> int:
    return subprocess.call(JOB)
