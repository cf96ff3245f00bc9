"""Who holds the lock that a process waits for (Linux).

A lock of the kernel (`flock`, `fcntl`, `lockf`) belongs to the process that the kernel names. A lock
file, whose existence is the lock, belongs to the process that it names in its first line, else to one
that has it open: torch's `FileBaton` and `filelock.SoftFileLock` keep it open until they remove it.
"""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from ..job_files import ask, text
from ..launch.processes import same_start

KERNEL_LOCKS = ("flock", "fcntl")
POLLED = ("flock", "sqlite3")
"""Operations of a wait without a path that ask for a lock of the kernel again and again."""

OWN_FILE = "existing file"
"""The operation of a wait for a lock file that the program makes itself, and may have closed at once."""

TIMED_FILE = "existing file, maybe for a time"
"""The same in a loop that may give up, or remove the file when it is old."""

ASKED_AGAIN = frozenset((*POLLED, OWN_FILE, TIMED_FILE, "lock file"))
"""Operations in which a program or a library looks again and again whether the lock is free."""

PIDS = range(100, 2**22)
"""Numbers in a lock file that are taken for a pid: smaller ones may be a rank, larger ones a time."""

LARGEST_LOCK = 1024
"""Bytes that a lock file may hold: the pid and the host of who holds it."""

_LOCK_NAME = re.compile(r"(?:^|[./_-])lock(?:$|[._-][^/]*$)(?<!\.py)(?<!\.ipynb)", re.IGNORECASE)
"""Programs and notebooks may be about a lock."""

_NETWORK = re.compile(r"(nfs|cifs|smb|lustre|gpfs|beegfs|ceph|glusterfs|afs|fuse\.(sshfs|glusterfs))")
"""File systems that processes on other machines may use at the same time."""


def holder(op: str, path: str, waiter: int) -> int | None:
    """Pid of the process that holds the lock for which process `waiter` waits.

    Args:
        op: `flock` or `fcntl` for a lock of the kernel, else that of a wait for a lock file.

    Returns:
        0 when no process holds it; None when the lock is gone or its holder cannot be seen from here.
    """
    if op in KERNEL_LOCKS:
        return holder_of_lock(path, waiter)
    pid = holder_of_file(path, waiter)
    if pid == 0 and op in (OWN_FILE, TIMED_FILE):
        return 0 if op == OWN_FILE and _is_lock(path) and _owner_in(path) is not None else None
    return pid


def holder_of_lock(path: str, waiter: int) -> int | None:
    """Holder of a lock of the kernel, from `/proc/locks`; None when the kernel does not tell.

    A waiting line carries `->` and the number of the lock that it waits for. A process that asks again
    and again has no such line: then the lock on the file itself counts.
    """
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    file = ""
    with suppress(OSError):
        file = _number(ask(os.stat, path))
    holders: dict[str, int] = {}
    of_file: list[int] = []
    for fields in (line.split() for line in lines):
        if "->" in fields:
            if int(fields[5]) == waiter:
                return _visible(holders.get(fields[0]))
        elif len(fields) > 5:
            holders[fields[0]] = int(fields[4])
            of_file += [int(fields[4])] if fields[5] == file else []
    return next((pid for pid in map(_visible, of_file) if pid is not None), None)


def held_against(waiter: int) -> list[tuple[str, int]]:
    """(path, pid) of each file that a process has open and another has locked, from `/proc/locks`."""
    try:
        holders = {file: pid for file, pid in _kernel_locks() if pid not in (waiter, 0, -1)}
    except OSError:
        return []
    locked = []
    for path in _open_files(waiter) if holders else ():
        with suppress(OSError):
            if (pid := holders.get(_number(ask(os.stat, path)))) is not None:
                locked.append((path, pid))
    return locked


def lock_files(pids: Iterable[int]) -> list[str]:
    """The lock files whose existence is the lock that some processes have open."""
    paths = {path for pid in pids for path in _open_files(pid) if _LOCK_NAME.search(path)}
    of_kernel = {file for file, _ in _kernel_locks()} if paths else set()
    return sorted(path for path in paths if _is_existing(path, of_kernel))


def _kernel_locks() -> list[tuple[str, int]]:
    """The locks that processes have, from `/proc/locks`: (file as `_number` has it, pid)."""
    with suppress(OSError):
        lines = map(str.split, Path("/proc/locks").read_text().splitlines())
        return [
            (fields[5], int(fields[4])) for fields in lines if "->" not in fields and len(fields) > 5
        ]
    return []


def remains(path: str) -> bool:
    """True for a lock file that is still there."""
    with suppress(OSError):
        return ask(os.path.exists, path)
    return False


def _is_existing(path: str, of_kernel: Collection[str]) -> bool:
    """True for a file that is there, holds no data, and that the kernel has no lock on."""
    with suppress(OSError):
        status = ask(os.stat, path)
        holds_data = not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_LOCK
        return not holds_data and _number(status) not in of_kernel
    return False


def _number(status: os.stat_result) -> str:
    """A file as `/proc/locks` names it: its device, and its number there."""
    return f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"


def holder_of_file(path: str, waiter: int) -> int | None:
    """Holder of a lock file; 0 when no process holds it, None when it is gone or unknown."""
    try:
        status, path = ask(os.stat, path), ask(os.path.realpath, path)
    except OSError:
        return None
    owner = _owner_in(path) if _is_lock(path) else None
    if owner is not None:
        pid, local = owner
        return (pid if _older(pid, status.st_mtime) else 0) if local else None
    for pid in psutil.pids():
        if pid != waiter and path in _open_files(pid):
            return int(pid)
    may_look = os.geteuid() in (0, status.st_uid)
    return 0 if may_look and not _shared(path) else None


def _open_files(pid: int) -> Iterator[str]:
    """What a process has open, as far as we may look.

    By the links alone: `psutil.Process.open_files` gives up at a file whose folder may not be entered.
    """
    links = Path(f"/proc/{pid}/fd")
    with suppress(OSError):
        for number in os.listdir(links):
            with suppress(OSError):
                yield os.readlink(links / number)


def _is_lock(path: str) -> bool:
    """True for a name that says lock: a number in another file may count anything."""
    name = os.path.basename(path).lower()
    return "lock" in name or "pid" in name


def _owner_in(path: str) -> tuple[int, bool] | None:
    """The pid that a lock file names, and whether it means a process of this machine."""
    try:
        words = text(path)[0].split(maxsplit=2)
    except OSError:
        return None
    if not words or not words[0].isdecimal() or int(words[0]) not in PIDS:
        return None
    return int(words[0]), len(words) < 2 or words[1] == socket.gethostname()


def _older(pid: int, moment: float) -> bool:
    """True for a living process that was there at `moment`; a later one has its number by chance."""
    try:
        started = psutil.Process(pid).create_time()
    except psutil.Error:
        return False
    return started < moment or same_start(started, moment)


def _shared(path: str) -> bool:
    """True on a file system that other machines may write to."""
    mounts = psutil.disk_partitions(all=True)
    inside = [m for m in mounts if Path(path).is_relative_to(m.mountpoint)]
    mount = max(inside, key=lambda m: len(m.mountpoint), default=None)
    return mount is not None and bool(_NETWORK.match(mount.fstype))


def _visible(pid: int | None) -> int | None:
    """None for a holder that has no pid here, as one in another container."""
    return pid if pid is not None and pid > 0 else None
