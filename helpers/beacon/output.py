"""Send what this process prints to a file of its own, unless the job has redirected it itself."""

from __future__ import annotations

import os
import sys

from .files import output_path


def separate(folder: str) -> None:
    """Point fd 1 and 2 at this process's file in the run directory `folder`.

    Only a descriptor that still leads to one of the run's own output files is moved: what the job
    has redirected itself stays as it is. Lines then appear when they are complete, as on a terminal.

    Raises:
        OSError: the file cannot be made.
    """
    ours = [fd for fd in (1, 2) if _is_ours(fd, folder)]
    if not ours:
        return
    path = output_path(folder, os.getpid())
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    for fd in ours:
        os.dup2(file, fd)
    os.close(file)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if 1 in ours and reconfigure is not None:
        reconfigure(line_buffering=True)


def _is_ours(fd: int, folder: str) -> bool:
    outputs = os.path.realpath(os.path.join(folder, "output"))
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith(outputs + os.sep)
    except OSError:
        return _is_among(fd, outputs)


def _is_among(fd: int, folder: str) -> bool:
    """True when `fd` leads to a file of `folder`, where there is no /proc."""
    try:
        facts = os.fstat(fd)
        return any(os.path.samestat(entry.stat(), facts) for entry in os.scandir(folder))
    except OSError:
        return False
