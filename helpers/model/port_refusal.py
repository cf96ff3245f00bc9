"""An address that the kernel refused to a process, since another one listens on it (EADDRINUSE)."""

from __future__ import annotations

import re

from .facts import ErrorView

_IN_USE = re.compile(
    r"EADDRINUSE|[Aa]ddress already in use|errno: 98\b|specific port\[\d+\] fail"
    r"|[Oo]nly one usage of each socket address"
)
"""EADDRINUSE: TCPStoreLibUvBackend.cpp of torch 2.13 (tests/jobs/port_taken_spawn); errno: socket.cpp of
torch 2.2 (both in torch/csrc/distributed/c10d); specific
port: HCCL's hccl_socket.cc; only one usage: WSAEADDRINUSE, in Windows' words; else the C library's, as
in Python's OSError."""

_PORT = re.compile(r"port: (\d+)|\[::\]:(\d+)|\('[^']*', (\d+)\)|port\[(\d+)\]|:(\d{2,5})\b")
"""In TCPStoreLibUvBackend.cpp; in socket.cpp of torch 2.2; in asyncio; in HCCL; after any address, as in
socket.cpp."""


def is_address_in_use(error: ErrorView) -> bool:
    """True when the kernel refused to let a process listen with EADDRINUSE."""
    return bool(_IN_USE.search(error.message))


def refused_port(error: ErrorView) -> int | None:
    """The port on which a process could not listen; None where the error tells of none."""
    match = _PORT.search(error.message) if is_address_in_use(error) else None
    return int(next(group for group in match.groups() if group)) if match else None
