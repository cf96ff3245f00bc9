"""The system call that blocks a thread, from /proc (Linux)."""

from __future__ import annotations

import os
import platform
from typing import Optional

from .record import NativeCall

_X86_64 = {
    0: "read", 1: "write", 7: "poll", 8: "lseek", 16: "ioctl", 17: "pread", 19: "readv", 20: "writev",
    23: "select", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom",
    46: "sendmsg", 47: "recvmsg", 61: "wait4", 72: "fcntl", 73: "flock", 74: "fsync", 202: "futex",
    230: "nanosleep", 232: "epoll_wait", 247: "waitid", 257: "open", 270: "select", 271: "poll",
    281: "epoll_wait", 288: "accept", 34: "pause", 2: "open", 65: "semop",
}  # fmt: skip
_AARCH64 = {
    63: "read", 64: "write", 65: "readv", 66: "writev", 29: "ioctl", 72: "select", 73: "poll",
    101: "nanosleep", 115: "nanosleep", 203: "connect", 202: "accept", 242: "accept", 206: "sendto",
    207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 260: "wait4", 25: "fcntl", 32: "flock",
    82: "fsync", 98: "futex", 22: "epoll_wait", 95: "waitid", 56: "open",
}  # fmt: skip
_CALLS = {"x86_64": _X86_64, "aarch64": _AARCH64}.get(platform.machine(), {})
_ON_A_FILE = frozenset(
    (
        *("read", "write", "readv", "writev", "pread", "ioctl", "connect", "accept", "sendto"),
        *("recvfrom", "sendmsg", "recvmsg", "fcntl", "flock", "fsync"),
    )
)

UNTIMED = frozenset(("read", "write", "readv", "writev", "pread", "flock", "wait4", "waitid", "fsync"))
"""Calls without a time limit: whoever has left one has got what it waited for."""


def blocking_call(thread: int, process: str = "self") -> Optional[NativeCall]:
    """The system call that blocks kernel thread `thread`; None while it runs, or where unknown.

    Args:
        process: pid of the thread's process, `self` for this one.
    """
    try:
        with open(f"/proc/{process}/task/{thread}/syscall", encoding="utf-8") as file:
            fields = file.read().split()
    except OSError:
        return None
    if len(fields) < 2 or not fields[0].isdigit():
        return None
    call = _CALLS.get(int(fields[0]), f"syscall {fields[0]}")
    if call == "select" and int(fields[1], 16) == 0:
        call = "nanosleep"  # on no file at all: how `time.sleep` sleeps before Python 3.11
    fd = int(fields[1], 16) if call in _ON_A_FILE else None
    limited = call == "futex" and len(fields) > 4 and int(fields[4], 16) != 0
    return {"call": call, "fd": fd, "target": _target(fd, process), "limited": limited}


def processor_time(thread: int) -> Optional[float]:
    """Seconds of processor time that a thread of this process has used; None where unknown."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat", encoding="utf-8") as file:
            return int(file.read().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def _target(fd: Optional[int], process: str) -> Optional[str]:
    if fd is None:
        return None
    try:
        return os.readlink(f"/proc/{process}/fd/{fd}")
    except OSError:
        return None
