"""What the kernel did to a job for memory: how often it killed, and which processes it stalls."""

from __future__ import annotations

from pathlib import Path

from ..launch.control_group import PROC, ROOT, memory_groups


class Kills:
    """Kills for memory in the control group of a process, counted from now on.

    The group is the one it is in now: when they are counted, the process may have ended.

    Args:
        pid: of the process.
        root, proc: where control groups and processes are mounted.
    """

    def __init__(self, pid: int, root: Path = ROOT, proc: Path = PROC) -> None:
        self._groups = memory_groups(pid, root, proc)
        self._newest = self._initial = 0
        self._initial = self.count()

    def count(self) -> int:
        """How many there have been so far; the last that was read, once the group has gone."""
        self._newest = max([self._newest, *(group.kills() for group in self._groups)])
        return self._newest - self._initial


def is_stalled(pid: int) -> bool:
    """True when a thread of the process sleeps without being interruptible (Linux).

    So does a process that wants more memory in a control group that is full and must not kill.
    """
    for file in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            if file.read_text().rpartition(")")[2].split()[0] == "D":
                return True
        except (OSError, IndexError):
            continue
    return False
