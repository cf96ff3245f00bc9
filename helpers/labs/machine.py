"""What this machine has, and what it lacks for a run of a lab. Nothing here changes anything."""

from __future__ import annotations

import errno
import importlib.metadata
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import psutil

from ..launch.control_group import PROC, ROOT, memory_groups
from ..launch.memory_limit import MB, can_stall
from ..launch.processes import port_owner
from .declaration import Need

PIN = "STUCK_RANKS_HARDWARE"
"""Set to `cpu`, it keeps every lab on the CPU, so that what a notebook shows is the same everywhere."""

GPU_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What the drivers of NVIDIA, AMD and WSL make on Linux."""

# Asked in a process of its own: importing torch takes seconds, and a broken one may crash.
TORCH_PROBE = """
import json, psutil, torch
memory = psutil.Process().memory_info()  # before anything is asked of a device
dist = torch.distributed
gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
print(json.dumps({
    "version": torch.__version__,
    "cuda": torch.version.cuda or torch.version.hip,
    "gpus": [torch.cuda.get_device_name(i) for i in range(gpus)],
    "nccl": list(torch.cuda.nccl.version()) if gpus and dist.is_nccl_available() else [],
    "private": memory.rss - getattr(memory, "shared", memory.rss),
    "gloo": dist.is_available() and dist.is_gloo_available(),
}))
"""


def lacking(need: Need, ranks: int) -> str:
    """Say what is lacking here.

    Args:
        need: of a program, or of a knob's value.
        ranks: the world size of the run.

    Returns:
        Words that follow "it ", or "" when nothing is lacking. GPUs are counted once per process;
        where there is a driver, torch is asked in another process, which takes seconds.
    """
    if need == "compiler":
        tools = {"a C++ compiler": compiler(), "ninja": ninja()}
        missing = [name for name, path in tools.items() if path is None]
        if not missing and " " in sys.prefix:
            return "needs an environment in a path without spaces, which torch's C++ builds do not quote"
        return f"needs {' and '.join(missing)}" if missing else ""
    if need in ("deepspeed", "transformers"):
        return "" if installed(need) else f"needs the package {need}"
    if need == "oom-stall":
        return "" if _can_stall() else "needs memory control groups of version 1"
    wanted = gpus_wanted(need, ranks)
    wants = f"needs {wanted} GPUs" if wanted > 1 else "needs a GPU"
    if os.environ.get(PIN) == "cpu":
        return f"{wants}, and {PIN}=cpu leaves them out"
    gpus = _gpus()
    return "" if gpus >= wanted else f"{wants}, and this machine has {gpus or 'none'}"


def gpus_wanted(need: Need, ranks: int) -> int:
    """How many GPUs a need of a run with that world size asks for; 0 for a need of another kind."""
    return {"one-gpu": 1, "two-gpus": 2, "gpu-per-rank": ranks}.get(need, 0)


def refusal(
    memory_mb: int,
    disk_mb: int,
    folders: Sequence[Path],
    command: Sequence[str],
    environment: Mapping[str, str],
) -> str:
    """Say why a run would fail because something is not free.

    Args:
        memory_mb: megabytes that it takes.
        disk_mb: megabytes that it may take in any of `folders`.
        folders: where it writes.
        command: of the run.
        environment: of the run.

    Returns:
        One sentence for a person, or "".
    """
    if (free := free_memory() // MB) < memory_mb:
        return f"it needs {memory_mb} MB of free memory, and {free} MB are free: end what uses it"
    for folder in folders:
        if (free := shutil.disk_usage(folder).free // MB) < disk_mb:
            return f"it needs {disk_mb} MB of disk in {folder}, and {free} MB are free: make room there"
    port = _port(command, environment)
    return _port_conflict(port) if port else ""


def _port(command: Sequence[str], environment: Mapping[str, str]) -> int | None:
    """The port that rank 0 will listen on if MASTER_PORT fixes it. Launchers choose their own."""
    port = environment.get("MASTER_PORT", "")
    return int(port) if command[0] == "python" and port.isdigit() else None


def _port_conflict(port: int) -> str:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", port))
        except OverflowError:
            return f"MASTER_PORT={port} is not a port: unset it"
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return f"its port {port} cannot be used ({error.strerror}): unset MASTER_PORT"
            holder = port_owner(port, ())
            owner = f"process {holder[0]} ({holder[1]})" if holder else "a process that cannot be seen"
            return f"its port {port} is in use by {owner}: end that process, or unset MASTER_PORT"
    return ""


def probe_torch(python: str = sys.executable, seconds: float = 120.0) -> Mapping[str, object]:
    """Import torch in another process.

    Args:
        python: the interpreter to ask.
        seconds: how long it may take.

    Returns:
        What the probe found, or {"error": last line of what went wrong}.
    """
    if python == sys.executable and importlib.util.find_spec("torch") is None:
        return {"error": "not installed"}
    try:
        done = subprocess.run(
            [python, "-c", TORCH_PROBE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)}
    try:
        facts: dict[str, object] = json.loads(done.stdout.strip().splitlines()[-1])
        return facts
    except (IndexError, ValueError):
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"its import ended with code {done.returncode}"}


def gpu_count() -> int:
    """How many GPUs torch sees; it is asked, in another process, only where there is a driver."""
    if not any(Path(device).exists() for device in GPU_DEVICES):
        return 0
    gpus = _probed().get("gpus")
    return len(gpus) if isinstance(gpus, list) else 0


def private_with_torch() -> int:
    """Bytes of private memory that a process has which has imported torch, 0 where it cannot be told.

    It is asked in another process, once. Builds differ in it.
    """
    private = _probed().get("private", 0)
    return private if isinstance(private, int) else 0


_probed = cache(probe_torch)
_gpus = cache(gpu_count)
_can_stall = cache(can_stall)


def installed(name: str) -> str | None:
    """The version of an installed package, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def compiler() -> str | None:
    """The path of a C++ compiler, found as torch finds it."""
    return _first_tool(os.environ.get("CXX", ""), "c++", "g++", "clang++")


def ninja() -> str | None:
    """The path of ninja."""
    return _first_tool(str(Path(sys.executable).with_name("ninja")), "ninja")


def py_spy() -> str | None:
    """The path of py-spy."""
    return _first_tool(str(Path(sys.executable).with_name("py-spy")), "py-spy")


def _first_tool(*candidates: str) -> str | None:
    """The path of the first command that exists."""
    return next((path for name in candidates if name and (path := shutil.which(name))), None)


def memory_room(root: Path = ROOT, proc: Path = PROC) -> int | None:
    """How much memory this process's control groups still allow.

    Args:
        root, proc: where control groups and processes are mounted.

    Returns:
        Bytes, the smallest over the group and all groups around it; None without a limit.
    """
    groups = [parent for group in memory_groups("self", root, proc) for parent in group.above()]
    return min((room for group in groups if (room := group.room()) is not None), default=None)


def free_memory() -> int:
    """Bytes of memory that are free here, within what the control groups allow."""
    room = memory_room()
    available = psutil.virtual_memory().available
    return available if room is None else min(room, available)


def cores() -> int:
    """How many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
