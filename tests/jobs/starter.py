"""A site's start program: it starts the trainer of its rank in one of several ways, and waits for it.

python -m starter run|fork|preflight PROGRAM [ARG ...]
python -m starter spawn PORT PROGRAM [ARG ...]
"""

import os
import runpy
import subprocess
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(program: list[str]) -> int:
    """In a program of its own."""
    return subprocess.run([sys.executable, *program], check=False).returncode


def fork(program: list[str]) -> int:
    """In a fork of this process."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    sys.argv = program
    runpy.run_path(program[0], run_name="__main__")
    return 0


def preflight(program: list[str]) -> int:
    """In a program of its own, once all ranks have met and parted again."""
    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(1))
    dist.barrier()
    dist.destroy_process_group()
    return run(program)


def spawned(rank: int, port: str, program: list[str]) -> None:
    """In a program of its own, started by a process of `mp.spawn`."""
    place = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    subprocess.run([sys.executable, *program], env={**os.environ, **place}, check=True)


if __name__ == "__main__":
    if sys.argv[1] == "spawn":
        mp.spawn(spawned, args=(sys.argv[2], sys.argv[3:]), nprocs=2)
    else:
        sys.exit({"run": run, "fork": fork, "preflight": preflight}[sys.argv[1]](sys.argv[2:]))
