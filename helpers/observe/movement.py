"""How often the kernel has let the threads of a process run (Linux)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

MOST_THREADS = 256
"""Threads of a process that are looked at: each takes 0.02 ms."""

TELLS = Path("/proc/self/task").is_dir()
"""Whether this system tells how often a thread has been scheduled."""


def movements(pid: int, threads: Sequence[int] = ()) -> list[tuple[int, bool, int]] | None:
    """Of each thread: the kernel's id, whether it runs or could run, how often it has been scheduled.

    A thread that has not been scheduled has done nothing. `status` needs no right of a debugger. Threads
    that have ended are left out.

    Args:
        threads: those to look at; none for all that the process has.

    Returns:
        None where the system does not tell.
    """
    if not TELLS:
        return None
    if not threads:
        with suppress(OSError):
            threads = sorted(int(task.name) for task in Path(f"/proc/{pid}/task").iterdir())[
                :MOST_THREADS
            ]
    return [movement for thread in threads if (movement := _movement(pid, thread)) is not None]


def _movement(pid: int, thread: int) -> tuple[int, bool, int] | None:
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/task/{thread}/status").read_text().splitlines()
        fields = dict(line.partition(":\t")[::2] for line in lines)
        switches = sum(int(count) for name, count in fields.items() if name.endswith("ctxt_switches"))
        return thread, fields["State"].startswith("R"), switches
    return None
