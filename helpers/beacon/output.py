"""Send what this process prints to a pipe of its own, unless the job has redirected it itself."""

from __future__ import annotations

import os
import sys
from typing import Optional


def separate(folder: str) -> None:
    """Point fd 1 and 2 at a FIFO of this process in the run directory `folder`.

    Only a descriptor that still leads to one of the run's own FIFOs is moved: what the job has
    redirected itself stays as it is, and so does what this process had before an `exec`. Where no FIFO
    is spare, the process prints where its parent does. Lines then appear when they are complete, as on
    a terminal.

    Raises:
        OSError: the FIFO cannot be opened.
    """
    pipes = os.path.realpath(os.path.join(folder, "output"))
    owners = {fd: owner for fd in (1, 2) if (owner := _owner(fd, pipes)) is not None}
    others = [fd for fd, owner in owners.items() if owner != str(os.getpid())]
    path = _take(pipes) if others else None
    if path is not None:
        # For reading, too: with a reader of its own, no process is ended by SIGPIPE (fifo(7)).
        pipe = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        for fd in others:
            os.dup2(pipe, fd)
        os.close(pipe)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if 1 in owners and reconfigure is not None:
        reconfigure(line_buffering=True)


def _take(pipes: str) -> Optional[str]:
    """The path of a FIFO that is this process's from now on; None where none is spare."""
    for name in os.listdir(pipes):
        state, _, number = name.partition("-")
        if state == "spare":
            path = os.path.join(pipes, f"{os.getpid()}-{number}")
            try:
                os.rename(os.path.join(pipes, name), path)
            except FileNotFoundError:  # another process was faster
                continue
            return path
    return None


def _owner(fd: int, pipes: str) -> Optional[str]:
    """Who has taken the FIFO that `fd` leads to: a pid, or `job`; None for a file not in `pipes`."""
    try:
        path = os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        path = _path_of(fd, pipes)
    folder, name = os.path.split(path)
    return name.partition("-")[0] if folder == pipes else None


def _path_of(fd: int, pipes: str) -> str:
    """The path of an open FIFO where there is no /proc; empty for one that is not in `pipes`."""
    try:
        facts = os.fstat(fd)
        return next((e.path for e in os.scandir(pipes) if os.path.samestat(e.stat(), facts)), "")
    except OSError:
        return ""
