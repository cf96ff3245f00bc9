"""What the kernel did to a job for memory: how often it killed, and whom it stops."""

from __future__ import annotations

from pathlib import Path

from ..launch.control_group import counters, group_of


class Kills:
    """Kills for memory in the control group of a process, counted from now on.

    The group is the one it is in now: when they are counted, the process may have ended.

    Args:
        pid: of the process.
        root, proc: where control groups and processes are mounted.
    """

    def __init__(
        self, pid: int, root: Path = Path("/sys/fs/cgroup"), proc: Path = Path("/proc")
    ) -> None:
        file = proc / str(pid) / "cgroup"
        places = (
            (group_of(file, root, 2), "memory.events"),
            (group_of(file, root / "memory", 1), "memory.oom_control"),
        )
        self._files = [group / name for group, name in places if group is not None]
        self._newest = self._before = 0
        self._before = self.count()

    def count(self) -> int:
        """How many there have been so far; the last that was read, once the group has gone."""
        self._newest = max([self._newest, *(counters(file).get("oom_kill", 0) for file in self._files)])
        return self._newest - self._before


def is_stalled(pid: int) -> bool:
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
