"""What a lab's program may need besides a CPU, and what of it this machine lacks."""

from __future__ import annotations

import os
import sys
from functools import cache

from ..launch import memory_limit
from . import machine

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
