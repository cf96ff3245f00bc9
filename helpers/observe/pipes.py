"""Who holds the other end of a pipe, a FIFO or a socket that a process waits at (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from ..job_files import ask
from . import sockets


def other_ends(pid: int, target: str, *, reads: bool) -> tuple[int, ...] | None:
    """Pids of the processes that hold the other end; None where none can be seen.

    Args:
        pid: the process that waits; it counts where no other process holds that end.
        target: `pipe:[NUMBER]`, `socket:[NUMBER]` or a FIFO's path, as its descriptor's link names it.
        reads: whether it waits to read, so that the other ends are those that write.

    Raises:
        TimeoutError: the path does not answer.
    """
    if target.startswith("socket:"):
        end = sockets.other_end(pid, target)
        if end is None:
            return None
        target = end
    elif not target.startswith("pipe:") and not ask(_is_fifo, target):
        return None
    pids = (int(number) for number in psutil.pids() if number != pid)
    holders = tuple(sorted(number for number in pids if _holds(number, target, writes=reads)))
    return holders or ((pid,) if _holds(pid, target, writes=reads) else None)


def _is_fifo(path: str) -> bool:
    return Path(path).is_fifo()


def _holds(pid: int, target: str, *, writes: bool) -> bool:
    modes = (os.O_RDWR, os.O_WRONLY if writes else os.O_RDONLY)
    return any(flags & os.O_ACCMODE in modes for flags in _open_flags(pid, target))


def _open_flags(pid: int, target: str) -> Iterator[int]:
    """The flags of each descriptor of a process that is open on `target`, as far as we may look."""
    process = Path(f"/proc/{pid}")
    with suppress(OSError):
        for number in os.listdir(process / "fd"):
            with suppress(OSError, ValueError, IndexError):
                if os.readlink(process / "fd" / number) == target:
                    info = (process / "fdinfo" / number).read_text()
                    yield int(info.partition("flags:")[2].split()[0], 8)
