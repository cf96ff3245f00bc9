"""What the kernel did to a job for memory: how often it killed, and whom it stops."""

from __future__ import annotations

from pathlib import Path


def kernel_kills(pid: int) -> int:
    """Kills for memory counted by the cgroup of process `pid` so far; 0 where none can be read.

    cgroup v2 counts `oom_kill` in `memory.events`, v1 in `memory.oom_control`.
    """
    for path in _counters(pid):
        try:
            for line in path.read_text().splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
        except (OSError, ValueError):
            continue
    return 0


def stands_in_kernel(pid: int) -> bool:
    """True when a thread of the process sleeps without being interruptible (Linux).

    So does whoever wants more memory in a control group that is full and may not kill.
    """
    for file in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            if file.read_text().rpartition(")")[2].split()[0] == "D":
                return True
        except (OSError, IndexError):
            continue
    return False


def _counters(pid: int) -> list[Path]:
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found.append(Path("/sys/fs/cgroup") / path.lstrip("/") / "memory.events")
        elif "memory" in controllers.split(","):
            base = Path("/sys/fs/cgroup/memory") / path.lstrip("/")
            found.append(base / "memory.oom_control")
    return found
