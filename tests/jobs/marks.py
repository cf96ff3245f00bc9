"""Lets a job of this folder note the moment just before a call that never returns."""

import json
import os
import time
from pathlib import Path


def _started(pid: int) -> float:
    """Seconds from the machine's start to that of process `pid`, by the kernel's own book."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def about_to_block() -> None:
    """Write down the moment and the age of the command, if a test asks for it by STALL_MARKS.

    Both are on the clock of the kernel, so a test can place the stall in the seconds since the start
    of the command without any clock of its own. The command is the process below the guardian.
    """
    folder = os.environ.get("STALL_MARKS")
    if folder is None:
        return
    command, guardian = os.getpid(), int(os.environ["STUCK_RANKS_GUARDIAN"])
    while (above := _parent(command)) not in (guardian, 1, 0):
        command = above
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    noted = {"stalled": now - _started(command), "monotonic": time.monotonic()}
    Path(folder, f"{os.getpid()}.json").write_text(json.dumps(noted))
