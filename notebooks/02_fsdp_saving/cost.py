"""What a block of code costs this rank in memory and in traffic; a disk with little room."""

import ctypes
import os
import resource
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil


class Cost:
    """Memory and traffic of a block of code. The kernel counts them, on Linux; elsewhere they are 0.

    Attributes:
        memory: bytes of resident memory at the peak, above those at the start.
        received: bytes that have come in over TCP, which is how gloo talks.
    """

    memory = received = 0

    def __enter__(self) -> "Cost":
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)  # memory freed earlier would hide what is taken now
            Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
            self._memory, self._received = _status("VmRSS"), _received()
        return self

    def __exit__(self, *_: object) -> None:
        if sys.platform == "linux":
            self.memory = _status("VmHWM") - self._memory
            self.received = _received() - self._received

    def __str__(self) -> str:
        return f"{self.memory / 1e6:.1f} MB of memory at the peak, {self.received / 1e6:.2f} MB received"


@contextmanager
def full_disk(full: bool) -> Iterator[None]:
    """While `full`, no file of this process can grow beyond 100 kB, as with a quota."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000 if full else most, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))


def _received() -> int:
    """The sum of `tcpi_bytes_received`, at byte 128 of the kernel's `struct tcp_info`."""
    total = 0
    for connection in psutil.Process().net_connections("tcp"):
        if connection.status == psutil.CONN_ESTABLISHED:
            with socket.socket(fileno=os.dup(connection.fd)) as end:
                info = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
            total += struct.unpack_from("=Q", info, 128)[0]
    return total
