"""What a lab's program may need besides a CPU, and what of it this machine lacks."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from ..launch import memory_limit
from ..launch.control_group import MB
from ..launch.processes import port_owner
from . import machine
from .machine import free_memory

PIN = "STUCK_RANKS_HARDWARE"
"""Set to `cpu`, it keeps every lab on the CPU, so that what a notebook shows is the same everywhere."""

NEEDS = (
    "one-gpu",
    "two-gpus",
    "gpu-per-rank",
    "compiler",
    "deepspeed",
    "transformers",
    "freezing-group",
)
"""`gpu-per-rank` is what NCCL needs; `compiler` is a C++ compiler and ninja, for torch's extensions;
`freezing-group` is a memory control group that stops processes in place of killing one."""


def lacking(need: str, ranks: int) -> str:
    """Say what is lacking here.

    Args:
        need: one of NEEDS.
        ranks: the world size of the run.

    Returns:
        Words that follow "it ", or "" when nothing is lacking. GPUs are counted once a process;
        where a driver is there, torch is asked in another process, which takes seconds.
    """
    if need == "compiler":
        tools = {"a C++ compiler": machine.compiler(), "ninja": machine.ninja()}
        missing = [name for name, path in tools.items() if path is None]
        if not missing and " " in sys.prefix:
            return "needs an environment in a path without spaces, which torch's C++ builds do not quote"
        return f"needs {' and '.join(missing)}" if missing else ""
    if need in ("deepspeed", "transformers"):
        return "" if machine.installed(need) else f"needs the package {need}"
    if need == "freezing-group":
        return "" if _can_freeze() else "needs memory control groups of version 1"
    wanted = {"one-gpu": 1, "two-gpus": 2, "gpu-per-rank": ranks}[need]
    wants = f"needs {wanted} GPUs" if wanted > 1 else "needs a GPU"
    if os.environ.get(PIN) == "cpu":
        return f"{wants}, and {PIN}=cpu leaves them out"
    found = _gpus()
    return "" if found >= wanted else f"{wants}, and this machine has {found or 'none'}"


_can_freeze = cache(memory_limit.can_freeze)
"""Whether such a group can be had; tried once a process."""

_gpus = cache(machine.gpu_count)


def refusal(
    memory: int,
    disk: int,
    folders: Sequence[Path],
    command: Sequence[str],
    environment: Mapping[str, str],
) -> str:
    """Say why a run would fail for want of something.

    Args:
        memory: megabytes that it takes.
        disk: megabytes that it may take in any of `folders`.
        folders: where it writes.
        command: of the run.
        environment: of the run.

    Returns:
        One sentence for a person, or "".
    """
    if (free := free_memory() // MB) < memory:
        return f"it needs {memory} MB of free memory, and {free} MB are free: end what uses it"
    for folder in folders:
        if (free := shutil.disk_usage(folder).free // MB) < disk:
            return f"it needs {disk} MB of disk in {folder}, and {free} MB are free: make room there"
    port = _port(command, environment)
    return _taken(port) if port else ""


def _port(command: Sequence[str], environment: Mapping[str, str]) -> int | None:
    """The port that rank 0 will listen on: one that MASTER_PORT fixes. Launchers choose their own."""
    said = environment.get("MASTER_PORT", "")
    return int(said) if command[0] == "python" and said.isdigit() else None


def _taken(port: int) -> str:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", port))
        except OverflowError:
            return f"MASTER_PORT={port} is no port: unset it"
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return f"its port {port} cannot be used ({error.strerror}): unset MASTER_PORT"
            found = port_owner(port, ())
            owner = f"process {found[0]} ({found[1]})" if found else "a process that cannot be seen"
            return f"its port {port} is in use by {owner}: end that process, or unset MASTER_PORT"
    return ""
