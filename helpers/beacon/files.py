"""What each process of a run has in its folder: a record, replaced whole, and files beside it."""

from __future__ import annotations

import contextlib
import errno
import json
import os

from .record import Written


def record_path(folder: str, pid: int) -> str:
    """Where the record of process `pid` is in the run directory `folder`."""
    return os.path.join(folder, "records", f"{pid}.json")


def stacks_path(folder: str, pid: int) -> str:
    """Where `faulthandler` writes the stacks of `pid` when it crashes."""
    return os.path.join(folder, "records", f"{pid}.stacks")


def failure_path(folder: str, pid: int) -> str:
    """Where `pid` says why its beacon could not start."""
    return os.path.join(folder, "records", f"{pid}.failed")


def is_released(folder: str) -> bool:
    """True once the run is over, and those of its processes that still run are left as they are."""
    return os.path.exists(os.path.join(folder, "released")) or not os.path.isdir(folder)


def write(path: str, record: Written) -> None:
    """Replace the record at `path` in one step, so that a reader never sees half of it.

    Raises:
        OSError: the folder is gone or the disk is full.
    """
    staged = path + ".new"
    data = json.dumps(record, separators=(",", ":")).encode("utf-8", "replace")
    fd = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        written = os.write(fd, data)
    finally:
        os.close(fd)
    if written != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.replace(staged, path)


def give_up(path: str) -> None:
    """Leave an empty record at `path`: a new one cannot be written, and an old one no longer holds.

    An empty file needs no room on a full disk.
    """
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
