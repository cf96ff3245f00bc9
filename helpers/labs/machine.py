"""What this machine has and lacks, fact by fact. Needs psutil only; changes nothing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

Status = Literal["ok", "warn", "missing"]

GIB = 2**30
SET_UP = "Run make lab in the checkout, which installs it."
SYS_PTRACE_BIT = 19
GPU_DEVICES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""What the drivers of NVIDIA, AMD and WSL make on Linux."""

TORCH_FLOOR = (2, 11)
# The lowest version of each package that the guide cannot do without, as in pyproject.toml.
REQUIRED = {
    "lightning": (2, 6),
    "ipykernel": (7, 4),
    "ipywidgets": (8, 1, 9),
    "anywidget": (0, 11),
    "jupyterlab": (4, 6),
}
# The others, and what stays closed without them.
OPTIONAL = {
    "nbval": "Only make test needs it, and installs it.",
    "transformers": f"The part of lab 03 on host memory needs it. {SET_UP}",
    "safetensors": f"The part of lab 03 on host memory needs it. {SET_UP}",
    "accelerate": "Only jobs started with accelerate launch need it.",
    "deepspeed": f"The part of lab 03 on DeepSpeed needs it. {SET_UP}",
}

# Asked in a process of its own: importing torch takes seconds, and a broken one may crash.
TORCH_PROBE = """
import json, torch
dist = torch.distributed
gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
print(json.dumps({
    "version": torch.__version__,
    "cuda": torch.version.cuda or torch.version.hip,
    "gpus": [torch.cuda.get_device_name(i) for i in range(gpus)],
    "nccl": list(torch.cuda.nccl.version()) if gpus and dist.is_nccl_available() else [],
    "gloo": dist.is_available() and dist.is_gloo_available(),
}))
"""


@dataclass(frozen=True)
class Fact:
    """One thing this machine has or lacks.

    Attributes:
        name: what it is.
        value: what was found, in words.
        status: "ok"; "warn" when something of the guide does less; "missing" when nothing works.
        advice: one sentence on what to do or what follows, or "".
        number: the number in the value, where labs depend on it (a count, or bytes).
    """

    name: str
    value: str
    status: Status = "ok"
    advice: str = ""
    number: int | None = None


def collect() -> list[Fact]:
    """Look at this machine and this Python.

    Returns:
        The facts in the order in which they are shown. It takes a few seconds, most of them to
        import torch in another process. Nothing is changed, and what cannot be read is a fact.
    """
    return [
        python_fact(sys.version_info[:3]),
        platform_fact(platform.system(), platform.release()),
        *torch_facts(probe_torch()),
        *(package_fact(name, installed(name)) for name in (*REQUIRED, *OPTIONAL)),
        tool_fact("C++ compiler", compiler()),
        tool_fact("ninja", ninja()),
        memory_fact(psutil.virtual_memory().available, memory_room()),
        cores_fact(_cores()),
        ptrace_fact(_read("/proc/sys/kernel/yama/ptrace_scope"), _read("/proc/self/status")),
        tool_fact("py-spy", _first_tool(str(Path(sys.executable).with_name("py-spy")), "py-spy")),
        disk_fact(shutil.disk_usage(Path.cwd()).free),
    ]


def python_fact(version: tuple[int, ...]) -> Fact:
    """Judge a Python version, given as numbers."""
    fits = (3, 11) <= version[:2] < (3, 14)
    advice = "" if fits else "The guide needs Python 3.11, 3.12 or 3.13."
    return Fact("Python", ".".join(map(str, version)), "ok" if fits else "missing", advice)


def platform_fact(system: str, release: str) -> Fact:
    """Judge an operating system by the name and release that Python gives it."""
    if system == "Linux":
        wsl = "microsoft" in release.lower()
        return Fact("platform", f"Linux {release}" + (" (WSL)" if wsl else ""))
    if system == "Darwin":
        return Fact(
            "platform", f"macOS, Darwin {release}", "warn", "What needs Linux's /proc is left out."
        )
    return Fact("platform", system, "missing", "Run the guide in Linux; on Windows, inside WSL.")


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
        found: dict[str, object] = json.loads(done.stdout.strip().splitlines()[-1])
        return found
    except (IndexError, ValueError):
        said = done.stderr.strip().splitlines()
        return {"error": said[-1] if said else f"its import ended with code {done.returncode}"}


def torch_facts(found: Mapping[str, object]) -> list[Fact]:
    """Turn what the torch probe found into facts on torch, GPUs and NCCL."""
    if "error" in found:
        advice = f"No lab runs without torch. {SET_UP}"
        return [
            Fact("torch", str(found["error"]), "missing", advice),
            Fact("GPUs", "unknown without torch", "warn", "", 0),
        ]
    build = f"CUDA or ROCm {found['cuda']}" if found["cuda"] else "CPU build"
    status, advice = _judge(str(found["version"]), TORCH_FLOOR)
    if not found["gloo"]:
        status, advice = "missing", "This torch has no gloo, which all labs need on the CPU."
    facts = [Fact("torch", f"{found['version']} ({build})", status, advice)]
    gpus, nccl = found["gpus"], found["nccl"]
    names = [str(name) for name in gpus] if isinstance(gpus, list) else []
    if not names:
        note = "Labs run on the CPU over gloo." if not found["cuda"] else "torch sees no GPU here."
        return [*facts, Fact("GPUs", "none", "ok", note, 0)]
    version = ".".join(map(str, nccl)) if isinstance(nccl, list) and nccl else ""
    return [
        *facts,
        Fact("GPUs", f"{len(names)}: {', '.join(sorted(set(names)))}", "ok", "", len(names)),
        Fact("NCCL", version or "none", "ok" if version else "warn"),
    ]


def installed(name: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def package_fact(name: str, version: str | None) -> Fact:
    """Judge a package of REQUIRED or OPTIONAL by its version; None means not installed."""
    if name in OPTIONAL:
        if version is None:
            return Fact(name, "not installed", "warn", OPTIONAL[name])
        return Fact(name, version)
    if version is None:
        return Fact(name, "not installed", "missing", SET_UP)
    return Fact(name, version, *_judge(version, REQUIRED[name]))


def _judge(version: str, floor: tuple[int, ...]) -> tuple[Status, str]:
    """Compare a version with the lowest that the guide is made for."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[: len(floor)])
    if numbers >= floor:
        return "ok", ""
    return "warn", f"The guide is made for {'.'.join(map(str, floor))} or newer. {SET_UP}"


def gpu_count() -> int:
    """How many GPUs torch sees; it is asked, in another process, only where there is a driver."""
    if not any(Path(device).exists() for device in GPU_DEVICES):
        return 0
    gpus = probe_torch().get("gpus")
    return len(gpus) if isinstance(gpus, list) else 0


def compiler() -> str | None:
    """The path of a C++ compiler, found as torch finds it."""
    return _first_tool(os.environ.get("CXX", ""), "c++", "g++", "clang++")


def ninja() -> str | None:
    """The path of ninja."""
    return _first_tool(str(Path(sys.executable).with_name("ninja")), "ninja")


def _first_tool(*candidates: str) -> str | None:
    """Return the path of the first command that exists."""
    return next((path for name in candidates if name and (path := shutil.which(name))), None)


def tool_fact(name: str, path: str | None) -> Fact:
    """Say whether a helpful command is there; `path` is None when it is nowhere."""
    lacking = {
        "C++ compiler": "The part of lab 03 on DeepSpeed needs one: install g++ or clang.",
        "ninja": f"The part of lab 03 on DeepSpeed needs it. {SET_UP}",
        "py-spy": "Only its comparison with the instrument is left out.",
    }
    value = Path(path).name if path else "not found"
    return Fact(name, value, "ok" if path else "warn", "" if path else lacking[name])


def memory_room(root: Path = Path("/sys/fs/cgroup"), proc: Path = Path("/proc")) -> int | None:
    """Return how much memory this process's cgroups still allow.

    Args:
        root: where control groups are mounted, version 1 or 2.
        proc: where /proc is mounted.

    Returns:
        Bytes, the smallest over the group and all groups around it; None without a limit.
    """
    rooms = []
    for line in _read(str(proc / "self" / "cgroup")).splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers == "":
            base, names = root, ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            base = root / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        group = base / path.strip("/")
        # Inside a container the path may be one that only the host has: then base is the group.
        for folder in (group, *group.parents):
            limit, used = (_read(str(folder / name)).strip() for name in names)
            if limit.isdigit() and used.isdigit() and int(limit) < 2**60:
                rooms.append(max(0, int(limit) - int(used)))
            if folder == base:
                break
    return min(rooms, default=None)


def free_memory() -> int:
    """Bytes of memory that are free here, within what the control groups allow."""
    room = memory_room()
    available = psutil.virtual_memory().available
    return available if room is None else min(room, available)


def memory_fact(available: int, room: int | None) -> Fact:
    """Judge free memory, in bytes; room is what a control group still allows, if one limits."""
    limited = room is not None and room < available
    free = room if room is not None and limited else available
    value = f"{free / GIB:.1f} GiB free" + (" (limit of the container or job)" if limited else "")
    if free >= 2 * GIB:
        return Fact("memory", value, number=free)
    return Fact("memory", value, "warn", "A lab of two ranks needs about 2 GiB.", free)


def _cores() -> int:
    """Return how many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cores_fact(cores: int) -> Fact:
    """Judge the number of cores this process may use."""
    if cores >= 2:
        return Fact("cores", str(cores), number=cores)
    return Fact("cores", str(cores), "warn", "Two ranks share one core: runs take longer.", cores)


def ptrace_fact(scope: str, status: str) -> Fact:
    """Say whether tools such as py-spy and gdb may look into a process of the same user.

    Args:
        scope: the text of Yama's ptrace_scope, "" where there is none.
        status: the text of /proc/self/status, "" where there is none.
    """
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    if found is None:
        return Fact("ptrace", "unknown", "ok", "The instrument's own launch needs none.")
    if int(found.group(1), 16) >> SYS_PTRACE_BIT & 1 and scope.strip() != "3":
        return Fact("ptrace", "allowed (CAP_SYS_PTRACE)")
    if scope.strip() in ("", "0"):
        return Fact("ptrace", "allowed for processes of the same user")
    advice = "Jobs started by the instrument need none; py-spy on a running job needs root."
    return Fact("ptrace", f"restricted (ptrace_scope {scope.strip()})", "warn", advice)


def disk_fact(free: int) -> Fact:
    """Judge the free disk of the current folder, in bytes."""
    low = free < 2 * GIB
    advice = "Labs write checkpoints and a C++ build: make 2 GiB free." if low else ""
    return Fact("disk", f"{free / GIB:.1f} GiB free", "warn" if low else "ok", advice, free)


def _read(path: str) -> str:
    """Return a file's text, or "" where it cannot be read."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
