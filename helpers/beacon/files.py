"""What each process of a run has in its folder: its record, and files beside it.

A record is written over the one before. It follows a line with its length and its checksum (CRC-32), by
which whoever reads it while it is written knows that it is not whole.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import zlib
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .record import Samples, Written


def record_path(folder: str, pid: int) -> str:
    """Where the record of process `pid` is in the run directory `folder`."""
    return os.path.join(folder, "records", f"{pid}.record")


def stacks_path(folder: str, pid: int) -> str:
    """Where `faulthandler` writes the stacks of `pid` when it crashes."""
    return os.path.join(folder, "records", f"{pid}.stacks")


def samples_path(folder: str, pid: int) -> str:
    """Where `pid` says what it did at the newest ticks."""
    return os.path.join(folder, "records", f"{pid}.samples")


def failure_path(folder: str, pid: int) -> str:
    """Where `pid` says why its beacon could not start."""
    return os.path.join(folder, "records", f"{pid}.failed")


def is_released(folder: str) -> bool:
    """True once the run is over, and those of its processes that still run are left as they are."""
    return os.path.exists(os.path.join(folder, "released")) or not os.path.isdir(folder)


def write(path: str, record: Written | Samples) -> None:
    """Write the record at `path`, in the place of the one that is there.

    Only the first is put there by its name: to replace a file by another one, ext4 first sees to it that
    its blocks are on the way to the disk (`auto_da_alloc` in ext4(5)), which takes a millisecond.

    Raises:
        OSError: the folder is gone or the disk is full.
    """
    content = framed(json.dumps(record, separators=(",", ":")).encode("utf-8", "replace"))
    try:
        _write(path, content, os.O_WRONLY)
    except FileNotFoundError:
        _write(path + ".new", content, os.O_WRONLY | os.O_CREAT)
        os.replace(path + ".new", path)


def _write(path: str, content: bytes, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        written = os.write(descriptor, content)
    finally:
        os.close(descriptor)
    if written != len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def framed(data: bytes) -> bytes:
    """A record as it is written: after its length and its checksum."""
    return b"%x %x\n%b" % (len(data), zlib.crc32(data), data)


def read(path: str) -> Optional[bytes]:
    """The record at `path`: empty where it was given up, None while it is written.

    Raises:
        OSError: there is none.
    """
    with open(path, "rb") as file:
        head, _, rest = file.read().partition(b"\n")
    try:
        length, checksum = (int(number, 16) for number in head.split(b" "))
    except ValueError:
        return None if head else b""
    return rest[:length] if zlib.crc32(rest[:length]) == checksum else None


def give_up(path: str) -> None:
    """Leave an empty record at `path`: a new one cannot be written, and an old one no longer holds.

    An empty file needs no room on a full disk.
    """
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
