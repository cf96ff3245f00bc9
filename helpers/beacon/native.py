"""The system call that blocks a thread, from /proc (Linux)."""

from __future__ import annotations

import _thread
import os
import sys
import time
from typing import TYPE_CHECKING, List, Optional, Tuple

if TYPE_CHECKING:
    from .record import NativeCall


_MACHINE = os.uname().machine
_X86_64 = {
    0: "read", 1: "write", 7: "poll", 8: "lseek", 16: "ioctl", 17: "pread", 19: "readv", 20: "writev",
    23: "select", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom",
    46: "sendmsg", 47: "recvmsg", 61: "wait4", 72: "fcntl", 73: "flock", 74: "fsync", 202: "futex",
    230: "nanosleep", 232: "epoll_wait", 247: "waitid", 257: "open", 270: "select", 271: "poll",
    281: "epoll_wait", 288: "accept", 34: "pause", 2: "open", 65: "semop", 128: "sigtimedwait",
    130: "sigsuspend",
}  # fmt: skip
_AARCH64 = {
    63: "read", 64: "write", 65: "readv", 66: "writev", 29: "ioctl", 72: "select", 73: "poll",
    101: "nanosleep", 115: "nanosleep", 203: "connect", 202: "accept", 242: "accept", 206: "sendto",
    207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 260: "wait4", 25: "fcntl", 32: "flock",
    82: "fsync", 98: "futex", 22: "epoll_wait", 95: "waitid", 56: "open", 133: "sigsuspend",
    137: "sigtimedwait",
}  # fmt: skip
_CALLS = {"x86_64": _X86_64, "aarch64": _AARCH64}.get(_MACHINE, {})
_ON_A_FILE = frozenset(
    (
        *("read", "write", "readv", "writev", "pread", "ioctl", "connect", "accept", "sendto"),
        *("recvfrom", "sendmsg", "recvmsg", "fcntl", "flock", "fsync"),
    )
)

_LIMITS = {
    "x86_64": {
        7: (2, "ms"), 23: (4, "us"), 35: (0, "ns"), 202: (3, "futex"), 230: (2, "clock"), 232: (3, "ms"),
        270: (4, "ns"), 271: (2, "ns"), 281: (3, "ms"),
    },
    "aarch64": {
        22: (3, "ms"), 72: (4, "ns"), 73: (2, "ns"), 98: (3, "futex"), 101: (0, "ns"), 115: (2, "clock"),
    },
}.get(_MACHINE, {})  # fmt: skip
"""Number of a system call -> which of its arguments limits its time, and how that is given: as
milliseconds, or as the address of a `timeval` (us) or of a `timespec`."""

_TIMER_ABSTIME = 1  # of clock_nanosleep, linux/time.h
_FUTEX_WAIT_BITSET, _FUTEX_COMMAND, _FUTEX_CLOCK_REALTIME = 9, 0x7F, 0x100  # linux/futex.h
_FUTEX_PRIVATE = 0x80  # linux/futex.h
_CLOCK_REALTIME, _CLOCK_MONOTONIC = 0, 1  # linux/time.h
MOST_POLLED = 64
"""Descriptors of a call that are looked up; what waits for more is a server."""

_LONGEST_TIME = 1 << 40
"""Seconds above which a time span that was read is none."""

UNTIMED = frozenset(("read", "write", "readv", "writev", "pread", "flock", "wait4", "waitid", "fsync"))
"""Calls without a time limit: whoever has left one has got what it waited for."""


def blocking_call(thread: int, process: str = "self") -> Optional[NativeCall]:
    """The system call that blocks kernel thread `thread`; None while it runs, or where unknown.

    Args:
        process: pid of the thread's process, `self` for this one.
    """
    fields = _arguments(thread, process)
    if not fields:
        return None
    number, arguments = int(fields[0]), [int(field, 16) for field in fields[1:7]]
    call = _CALLS.get(number, f"syscall {number}")
    if call == "select" and arguments[0] == 0:
        call = "nanosleep"  # on no file at all: how `time.sleep` sleeps before Python 3.11
    fd = arguments[0] if call in _ON_A_FILE else None
    native_call: NativeCall = {
        "call": call,
        "fd": fd,
        "target": _target(fd, process),
        "limited": call == "futex" and arguments[3] != 0,
    }
    if call == "futex" and not arguments[1] & _FUTEX_PRIVATE and _is_shared(arguments[0], process):
        native_call["shared"] = True
    polled = _polled(call, arguments, process)
    if polled:
        native_call["polled"] = polled
    lasts, until = _limit(number, arguments, process)
    if (lasts, until) != (None, None) and _arguments(thread, process) == fields:
        if lasts is not None:
            native_call["lasts"] = lasts
        if until is not None:
            native_call["until"] = until
    return native_call


def _arguments(thread: int, process: str) -> List[str]:
    """The number of the system call that blocks a thread, then its arguments in base 16."""
    try:
        fields = _line(f"/proc/{process}/task/{thread}/syscall").split()
    except OSError:
        return []
    return fields if len(fields) > 6 and fields[0].isdigit() else []


def _limit(number: int, arguments: List[int], process: str) -> Tuple[Optional[float], Optional[float]]:
    """How many seconds a system call lasts at most, or until which monotonic time; neither: no limit."""
    place, kind = _LIMITS.get(number, (0, ""))
    if not kind:
        return None, None
    value = arguments[place]
    if kind == "ms":
        milliseconds = value & 0xFFFFFFFF
        return (milliseconds / 1e3 if milliseconds < 1 << 31 else None), None
    seconds = _time_at(value, process, 1e6 if kind == "us" else 1e9)
    clock = None
    if kind == "clock" and arguments[1] & _TIMER_ABSTIME:
        clock = arguments[0]
    elif kind == "futex" and arguments[1] & _FUTEX_COMMAND == _FUTEX_WAIT_BITSET:
        clock = _CLOCK_REALTIME if arguments[1] & _FUTEX_CLOCK_REALTIME else _CLOCK_MONOTONIC
    if seconds is None or clock is None:
        return seconds, None
    since = {_CLOCK_REALTIME: time.monotonic() - time.time(), _CLOCK_MONOTONIC: 0.0}.get(clock)
    return None, None if since is None else round(since + seconds, 1)


def _polled(call: str, arguments: List[int], process: str) -> List[str]:
    """What the descriptors point to for which `poll` or `epoll_wait` waits; empty where unknown."""
    descriptors: List[int] = []
    if call == "poll" and arguments[1] <= MOST_POLLED:
        raw = _memory(arguments[0], 8 * arguments[1], process)  # struct pollfd: int, short, short
        descriptors = [int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, len(raw), 8)]
    elif call == "epoll_wait":
        try:
            with open(f"/proc/{process}/fdinfo/{arguments[0]}", encoding="utf-8") as file:
                descriptors = [int(line.split()[1]) for line in file if line.startswith("tfd:")]
        except (OSError, ValueError, IndexError):
            pass
    targets = [_target(descriptor, process) for descriptor in descriptors[:MOST_POLLED]]
    return [target for target in targets if target is not None]


def _is_shared(address: int, process: str) -> bool:
    """Whether an address of a process lies in memory that processes may share."""
    try:
        with open(f"/proc/{process}/maps", encoding="utf-8", errors="replace") as file:
            for line in file:
                place, _, rest = line.partition(" ")
                first, _, end = place.partition("-")
                if int(first, 16) <= address < int(end, 16):
                    return rest[3:4] == "s"
    except (OSError, ValueError):
        pass
    return False


def _time_at(address: int, process: str, parts: float) -> Optional[float]:
    """The `timespec` or `timeval` at an address, in seconds; None for none, or one that cannot be read.

    Args:
        parts: into how many its second number divides a second.
    """
    raw = _memory(address, 16, process) if address else b""
    if len(raw) < 16:
        return None
    whole, part = (int.from_bytes(raw[start : start + 8], sys.byteorder) for start in (0, 8))
    return whole + part / parts if part < parts and whole < _LONGEST_TIME else None


def _memory(address: int, size: int, process: str) -> bytes:
    """Some bytes of the memory of a process; empty where they cannot be read."""
    try:
        memory = os.open(f"/proc/{process}/mem", os.O_RDONLY)
        try:
            return os.pread(memory, size, address)
        finally:
            os.close(memory)
    except (OSError, OverflowError):
        return b""


def executable(process: str = "self") -> str:
    """The program that a process runs, by its path; empty where unknown. Another follows an `exec`."""
    try:
        path = os.readlink(f"/proc/{process}/exe")
    except OSError:
        return ""
    suffix = " (deleted)"  # proc_pid_exe(5): it runs on, under its name
    return path[: -len(suffix)] if path.endswith(suffix) else path


def _line(path: str) -> str:
    """A file of one line in /proc, by as few calls as possible.

    Each gives up the interpreter lock, and for each a thread that computes is stopped to get it back;
    `open` makes nine.

    Raises:
        OSError: it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096).decode()
    finally:
        os.close(descriptor)


def processor_time(thread: int) -> Optional[float]:
    """Seconds of processor time that a thread of this process has used; None where unknown."""
    try:
        return _scheduled(thread)[0]
    except (OSError, ValueError):
        return None


def schedule(thread: int, process: str = "self") -> Tuple[float, float]:
    """Seconds for which a thread has had a processor, and for which it waited for one.

    Both are 0 where that is not known.

    Args:
        process: pid of the thread's process, `self` for this one.
    """
    try:
        return _scheduled(thread, process)
    except (OSError, ValueError):
        return 0.0, 0.0


def _scheduled(thread: int, process: str = "self") -> Tuple[float, float]:
    """Seconds for which a thread of a process has had a processor, and for which it waited for one.

    Raises:
        OSError, ValueError: that is not known.
    """
    run, delay, _ = _line(f"/proc/{process}/task/{thread}/schedstat").split()
    return int(run) / 1e9, int(delay) / 1e9


BUSY = 0.9
"""Share of the time for which a thread that spins has a processor, or could use one."""

RESTS = 10.0
"""How often a second it may still give its processor up by itself."""

FREE_LOOKS = 3
"""Looks at which the interpreter lock has to be free before a thread is known to spin without it."""

LET_GO = 0.001
"""Seconds for which the beacon lets go of the interpreter lock, to see whether others want it."""


class Spin:
    """Whether a thread that stays where it is keeps a processor busy, and Python's lock free.

    So does one that waits for a device: `cudaStreamSynchronize` and its kin ask again and again whether
    it is done (cudaDeviceScheduleSpin and ...Yield of cudaSetDeviceFlags, CUDA Runtime API). So does a
    long computation in C.

    Args:
        thread: the kernel's id of it.
    """

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._first = _use(thread)
        self._looks = self._free = 0

    def look(self) -> bool:
        """Take one look, while the thread is in no system call; True once it is known to spin."""
        first, now = self._first, _use(self._thread)
        if first is None or now is None:
            return False
        self._looks += 1
        self._free += is_lock_free()
        seconds = now[0] - first[0]
        busy = now[1] - first[1] >= BUSY * seconds
        at_work = busy and now[2] - first[2] <= RESTS * max(1.0, seconds)
        return at_work and self._free >= max(FREE_LOOKS, self._looks / 2)


def _use(thread: int) -> Optional[Tuple[float, float, int]]:
    """Now, the seconds for which a thread had or wanted a processor, and how often it has rested."""
    try:
        wanted = sum(_scheduled(thread))
        status = _line(f"/proc/self/task/{thread}/status")
        rests = status.partition("\nvoluntary_ctxt_switches:")[2].split()[0]
        return time.monotonic(), wanted, int(rests)
    except (OSError, ValueError, IndexError):
        return None


def is_lock_free() -> bool:
    """Whether no other thread runs Python code: one that does gives the lock back after an interval.

    The time for which this thread waits for a processor does not count.
    """
    thread = _thread.get_native_id()
    try:
        before, began = sum(_scheduled(thread)), time.monotonic()
        time.sleep(LET_GO)
        delay = time.monotonic() - began - LET_GO
        return delay - (sum(_scheduled(thread)) - before) < sys.getswitchinterval() / 2
    except (OSError, ValueError):
        return False


def _target(fd: Optional[int], process: str) -> Optional[str]:
    if fd is None:
        return None
    try:
        return os.readlink(f"/proc/{process}/fd/{fd}")
    except OSError:
        return None
