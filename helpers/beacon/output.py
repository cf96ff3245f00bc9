"""Send what this process prints to a pipe of its own, unless the job has redirected it itself."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from typing import Optional, Tuple

from .crashes import OUT_OF_THE_WAY

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC

_reader: Optional[Tuple[int, os.stat_result]] = None
"""The descriptor of the reader that is kept, and its pipe."""


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
    foreign = [fd for fd, owner in owners.items() if owner != str(os.getpid())]
    path = _take(pipes) if foreign else None
    if path is not None:
        reader = os.open(path, _READ)  # first: without a reader, the next line would wait for one
        pipe = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        for fd in foreign:
            os.dup2(pipe, fd)
        os.close(pipe)
        _keep(reader)
    elif owners:
        with contextlib.suppress(OSError):
            _keep(os.open(f"/proc/self/fd/{min(owners)}", _READ))
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if 1 in owners and reconfigure is not None:
        reconfigure(line_buffering=True)


def _keep(reader: int) -> None:
    """Keep a reader of our own pipe, so that no SIGPIPE ends this process when the other has gone.

    In a forked child, it takes the place of the parent's, unless the job has closed that.
    """
    global _reader
    try:
        number, facts = _reader or (-1, None)
        if facts is not None and _is_same(number, facts):
            os.dup2(reader, number, inheritable=False)
        else:
            number = fcntl.fcntl(reader, fcntl.F_DUPFD_CLOEXEC, OUT_OF_THE_WAY)
        _reader = number, os.fstat(number)
    finally:
        os.close(reader)


def _is_same(fd: int, facts: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), facts)
    except OSError:
        return False


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
